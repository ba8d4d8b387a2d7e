import { WindlassError } from '../../shared/errors/errors.ts';

/** For a command, and for a batch job on its login node or its own node. */
export const folderNotFound = (cwd = '') =>
  new WindlassError('cwd_not_found', {
    detail: `Folder not found: the account cannot enter ${cwd} on the host; nothing ran.`,
    hint: 'Give `cwd` as a folder that exists there.',
  });
