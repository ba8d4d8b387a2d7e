import type { RequestHandler } from 'express';
import {
  type Authenticator,
  identifyLateSender,
  identifySender,
} from '../identity/identify-sender.ts';

/**
 * Requires credentials: HTTP Basic (RFC 7617), an API token or an access token of the identity provider as Bearer (RFC
 * 6750), a login's cookie, or a link. A link comes before all, then Authorization: a wrong one is a 401 even beside a
 * valid cookie. Pages of other origins may use neither password nor cookie.
 */
export function authenticate(api: Authenticator): RequestHandler {
  return async (req, res, next) => {
    await identifySender(api, req, res);
    res.locals.isBodyLate = !req.complete;
    next();
  };
}

/** For bodies that are read at once: see identifyLateSender(). */
export function authenticateLateBody(api: Authenticator): RequestHandler {
  return async (req, res, next) => {
    await identifyLateSender(api, req, res);
    next();
  };
}
