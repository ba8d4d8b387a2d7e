import { CommandError, errnoOf } from '../command-error.ts';

const REASONS: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'this user may store no more on its disk',
  EROFS: 'it is on a read-only file system',
  EEXIST: 'it is a file',
  ENOTDIR: 'it or a part of its path is a file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENAMETOOLONG: 'its name is too long',
  // The directory is there, such as /proc.
  ENOENT: 'no directory can be made there',
};

/** In one line why a data directory cannot be used; another error as it is. */
export function explainDataDirError(error: unknown, wanted: string): unknown {
  const reason = REASONS[errnoOf(error) ?? ''];
  if (!reason) return error;
  const path = error instanceof Error && 'path' in error ? String(error.path) : wanted;
  return new CommandError(`The data directory ${path} cannot be used: ${reason}.`, {
    hint: 'Set DATA_DIR to a directory that this user can write.',
    cause: error,
  });
}
