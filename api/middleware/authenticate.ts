import type { RequestHandler } from 'express';
import {
  type Authenticator,
  identifyLateSender,
  identifySender,
} from '../identity/identify-sender.ts';

/**
 * Requires credentials: a link, else Authorization with a password (RFC 7617), an API token or the identity provider's
 * access token (RFC 6750), else a login's cookie. A wrong Authorization is a 401 even beside a valid cookie. Pages of
 * other origins may use links and tokens only.
 */
export function authenticate(api: Authenticator): RequestHandler {
  return async (req, res, next) => {
    await identifySender(api, { req, res });
    res.locals.isBodyLate = !req.complete;
    // Unless the answer says something else: a cache that users share may have a time for answers that say nothing.
    res.set('Cache-Control', 'private, no-cache');
    next();
  };
}

/** For bodies that are read at once: see identifyLateSender(). */
export function authenticateLateBody(api: Authenticator): RequestHandler {
  return async (req, res, next) => {
    await identifyLateSender(api, { req, res });
    next();
  };
}
