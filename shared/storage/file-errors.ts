import { unavailable, WindlassError } from '../errors/errors.ts';
import { isDiskFull } from '../process/disk-errors.ts';

/**
 * The folder is read-only, immutable or another user's, its disk is broken, or its share is lost: an operator can mend each.
 */
const UNUSABLE = ['EROFS', 'EACCES', 'EPERM', 'EIO', 'ESTALE', 'ENOTCONN'];

/** Whether the process lacks the rights to the file or folder. */
export const isRefused = (error: unknown): boolean =>
  ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Returns the WindlassError for a failed system call, or the error itself. */
export function translateFileError(error: unknown): unknown {
  if (isDiskFull(error))
    return new WindlassError('insufficient_storage', {
      detail: 'The disk of the object store is full.',
      hint: 'Free some space or ask the administrator to.',
      cause: error,
    });
  const { code } = error as NodeJS.ErrnoException;
  return code !== undefined && UNUSABLE.includes(code) ? folderUnusable(code, error) : error;
}

/** Like translateFileError(), for check(): every fault means that the store cannot be used. */
export function translateCheckError(error: unknown): unknown {
  return folderUnusable((error as NodeJS.ErrnoException).code ?? 'unknown', error);
}

const folderUnusable = (code: string, cause: unknown) =>
  unavailable(
    `the folder of the object store cannot be used (${code}).`,
    'Try again in a few seconds.',
    2,
    cause,
  );
