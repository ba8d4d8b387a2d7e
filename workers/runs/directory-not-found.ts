import { WindlassError } from '../../shared/errors/errors.ts';

/** For a command, and for a batch job on its login node or its own node. */
export const directoryNotFound = (cwd = '') =>
  new WindlassError('cwd_not_found', {
    detail: `the account cannot enter ${cwd} on the host; nothing ran.`,
    hint: 'Give `cwd` as a directory that exists there.',
  });
