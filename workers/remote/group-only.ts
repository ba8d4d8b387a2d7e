import { WindlassError } from '../../shared/errors.ts';

/** How a cancelled run ends whose host could not show all of its processes. */
export const groupOnly = () =>
  new WindlassError('cancelled', {
    detail:
      'Cancelled. The host has no /proc, so that only the process group of the command could be seen and ended.',
    hint: 'Look on the host for what had left that group.',
  });
