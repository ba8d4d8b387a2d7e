import { CommandError, errnoOf } from '../command-error.ts';

/** A handler of the error of a file that was to be made in a folder here. */
export const cannotWriteIn =
  (folder: string) =>
  (cause: unknown): never => {
    // A folder such as /proc takes no file, and says that there is none.
    if (!['ENOENT', 'EACCES', 'EPERM', 'EROFS'].includes(errnoOf(cause) ?? '')) throw cause;
    throw new CommandError(`Nothing can be written to ${folder} here.`, { cause });
  };

/** A handler of the error of a path here: undefined where there is none, as below what is no folder. */
export function ifNoPath(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) throw error;
}
