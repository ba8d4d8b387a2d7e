import { unavailable } from '../../shared/errors/errors.ts';

export const queueUnavailable = (cause: unknown) =>
  unavailable(
    'the queue cannot be reached.',
    'Try again in a few seconds. Meanwhile work is accepted and waits.',
    5,
    cause,
  );
