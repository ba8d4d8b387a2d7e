import { WindlassError } from '../../shared/errors/errors.ts';

/** Of a command, and of a batch job on its login node or on the node that it was to run on. */
export const folderNotFound = (cwd = '') =>
  new WindlassError('cwd_not_found', {
    detail: `Folder not found: the account cannot enter ${cwd} on the host; nothing ran.`,
    hint: 'Give `cwd` as a folder that exists there.',
  });
