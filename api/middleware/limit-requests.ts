import type { RequestHandler } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import { currentUser } from '../identity/current-user.ts';

/**
 * Rate limit: at most `perSecond` requests of one user in each second of the clock, in this process. Hand-made: of
 * express-rate-limit only its counter would be used.
 */
export function limitRequests(perSecond: number): RequestHandler {
  let second = 0;
  let counts = new Map<string, number>();
  return (_req, res, next) => {
    const now = Math.floor(Date.now() / 1_000);
    if (now !== second) {
      second = now;
      counts = new Map();
    }
    const { username } = currentUser(res);
    const count = (counts.get(username) ?? 0) + 1;
    counts.set(username, count);
    if (perSecond > 0 && count > perSecond) {
      throw new WindlassError('too_many_requests', {
        detail: `More than ${perSecond} requests in one second.`,
        hint: 'Wait a second. LIMIT_REQUESTS sets the limit.',
        headers: { 'Retry-After': '1' },
      });
    }
    next();
  };
}
