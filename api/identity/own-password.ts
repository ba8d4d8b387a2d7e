import { WindlassError } from '../../shared/errors/errors.ts';

/** Changes of one's own password in a second; each costs two hashes, of the old one and the new one. */
export const OWN_CHANGES = 2;

export const tooManyChanges = () =>
  new WindlassError('too_many_requests', {
    detail: `Too many requests: more than ${OWN_CHANGES} changes of your password in one second.`,
    hint: 'Wait a second, and change it once.',
    headers: { 'Retry-After': '1' },
  });
