import type { RequestHandler } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { RequestRates } from '../concurrency/request-rates.ts';
import { shareOf } from '../identity/current-user.ts';
import { usedCredential } from '../identity/sent-credential.ts';

/**
 * Rate limit: at most LIMIT_REQUESTS requests of one user in each second, in this process, and as many by the links of that
 * user. See refuse-floods.ts for what comes after.
 */
export function limitRequests(rates: RequestRates, perSecond: number): RequestHandler {
  const refusal = tooManyRequests(perSecond);
  return (req, res, next) => {
    if (rates.exceed(shareOf(res), usedCredential({ req, res }))) throw refusal;
    next();
  };
}

export const tooManyRequests = (perSecond: number) =>
  new WindlassError('too_many_requests', {
    detail: `More than ${perSecond} requests in one second.`,
    hint: 'Wait a second. LIMIT_REQUESTS sets the limit.',
    headers: { 'Retry-After': '1' },
  });
