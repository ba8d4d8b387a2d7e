import type { Request } from 'express';
import type { Exchange } from '../http/exchange.ts';
import { readLoginCookies } from './login-cookies.ts';

/**
 * The unverified credentials of a request: requests with an equal one are of one user, or of nobody. Of several cookies any
 * may be the login's. A link is none.
 */
export const sentCredentials = (req: Request): string[] => {
  const { authorization } = req.headers;
  return authorization === undefined ? readLoginCookies(req) : [authorization];
};

/** The credential that identified the user: one of sentCredentials(). Undefined for a link. */
export const usedCredential = ({ req, res }: Exchange): string | undefined =>
  res.locals.by === 'link' ? undefined : (req.headers.authorization ?? res.locals.loginSecret);
