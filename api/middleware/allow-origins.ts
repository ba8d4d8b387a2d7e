import type { Request, RequestHandler } from 'express';
import type { Config } from '../../shared/settings/config.ts';
import { isOwnOrigin } from '../http/same-origin.ts';
import { REQUEST_HEADERS } from '../openapi/operation.ts';

/** The request headers of every operation, and those of every request. */
export const ALLOWED_HEADERS = [
  'Authorization',
  'Content-Type',
  'Content-Encoding',
  'Content-Range',
  'X-Request-Id',
  'X-Requested-With',
  'X-HTTP-Method-Override',
  ...Object.keys(REQUEST_HEADERS),
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Tus-Resumable',
  'Upload-Checksum',
  'Upload-Concat',
  'Upload-Defer-Length',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
].join(', ');

const EXPOSED_HEADERS = [
  'Location',
  'ETag',
  'Retry-After',
  'Accept-Ranges',
  'Content-Range',
  'Content-Disposition',
  'Output-Complete',
  'Output-Offset',
  'Output-Size',
  'Deprecation',
  'Link',
  'X-Service-Message',
  'X-Service-Hint',
  'X-Request-Id',
  'Tus-Resumable',
  'Tus-Version',
  'Tus-Extension',
  'Tus-Max-Size',
  'Tus-Checksum-Algorithm',
  'Upload-Offset',
  'Upload-Length',
  'Upload-Expires',
].join(', ');

/** Longer is not kept by any browser. */
const PREFLIGHT_SECONDS = 7_200;

/**
 * Lets pages of ALLOWED_ORIGINS read answers (WHATWG Fetch, 3.3), and answers their preflights.
 * Access-Control-Allow-Credentials is not sent: such a page may use a token or a link, nothing else. See
 * isForeignPage().
 */
export function allowOrigins(config: Config): RequestHandler {
  const allowed = new Set(config.ALLOWED_ORIGINS);
  return (req, res, next) => {
    if (allowed.size > 0) res.vary('Origin');
    const origin = req.get('Origin');
    if (origin === undefined || !allowed.has(origin)) return next();
    res.set('Access-Control-Allow-Origin', origin);
    if (isPreflight(req)) {
      res
        .status(204)
        .set('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
        .set('Access-Control-Allow-Headers', ALLOWED_HEADERS)
        .set('Access-Control-Max-Age', String(PREFLIGHT_SECONDS))
        .end();
      return;
    }
    res.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
    res.locals.isForeignPage = !isOwnOrigin(req, config);
    next();
  };
}

/** OPTIONS of its own, such as that of tus, has no such header (WHATWG Fetch, 4.8). */
const isPreflight = (req: Request) =>
  req.method === 'OPTIONS' && req.get('Access-Control-Request-Method') !== undefined;
