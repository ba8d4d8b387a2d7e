import type { Request, Response } from 'express';
import { forbidden, type WindlassError } from '../../shared/errors/errors.ts';
import type { Config } from '../../shared/settings/config.ts';

/** Whether a request may change something: every method but the safe ones (RFC 9110, 9.2.1), and a GET that caches. */
export function isWrite(req: Request): boolean {
  if (req.method === 'GET') return req.query.cache !== undefined;
  return req.method !== 'HEAD' && req.method !== 'OPTIONS';
}

/**
 * CSRF protection: a browser sends our cookie with requests that other sites' pages cause, so a write must come from a
 * page of our origin. No page can set Origin, Referer or Sec-Fetch-Site itself. Throws `forbidden`.
 */
export function requireSameOrigin(req: Request, config: Config): void {
  if (!isWrite(req)) return;
  const site = req.get('Sec-Fetch-Site');
  const isFetchedByUs = site === 'same-origin';
  if (req.method === 'GET') {
    // A same-origin GET has no Origin. Where a foreign site redirects to us, Referer is the page that led there: ours, perhaps.
    if (site === undefined ? isOwn(req, config, req.get('Referer')) : isFetchedByUs) return;
    throw refusal(req, config, site === undefined ? 'its Referer' : 'its Sec-Fetch-Site');
  }
  const origin = req.get('Origin');
  if (origin === undefined ? isFetchedByUs : isOwn(req, config, origin)) return;
  throw refusal(req, config, 'its Origin');
}

/**
 * CSRF protection for requests without our cookie: a login, so that no page logs a user in as someone else, and requests
 * with a password that the browser remembers. Programs other than browsers send none of these headers.
 */
export function refuseCrossSite(req: Request, config: Config): void {
  if (!isWrite(req)) return;
  const origin = req.get('Origin');
  const site = req.get('Sec-Fetch-Site');
  if (origin !== undefined && !isOwn(req, config, origin)) throw refusal(req, config, 'its Origin');
  if (site === 'cross-site' || site === 'same-site')
    throw refusal(req, config, 'its Sec-Fetch-Site');
}

/** Whether a page of ours sent the request, as its Origin has it. */
export const isOwnOrigin = (req: Request, config: Config): boolean =>
  isOwn(req, config, req.get('Origin'));

/** Whether a script of a page of another origin, one of ALLOWED_ORIGINS, sent this request: see allowOrigins(). */
export const isForeignPage = (res: Response): boolean => res.locals.isForeignPage === true;

/** Whether the URL has our origin; `null` and invalid URLs do not. */
function isOwn(req: Request, config: Config, url: string | undefined): boolean {
  const given = parse(url);
  const own = ownUrl(req, config);
  if (!given || !own || given.protocol !== own.protocol || given.port !== own.port) return false;
  if (given.hostname === own.hostname) return true;
  // Users of a local service type either name.
  return !config.PUBLIC_URL && LOOPBACK.has(given.hostname) && LOOPBACK.has(own.hostname);
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * The service's address as clients see it. Host may be trusted: no page can set it, and the cookie has no Domain, so
 * that a foreign name (DNS rebinding) does not get it. Where a proxy rewrites Host, writes are refused until PUBLIC_URL
 * or TRUST_PROXY is set.
 */
export function ownUrl(req: Request, { PUBLIC_URL }: Config): URL | undefined {
  return parse(PUBLIC_URL ?? `${req.protocol}://${req.host}`);
}

function parse(url: string | undefined): URL | undefined {
  return url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
}

function refusal(req: Request, config: Config, because: string): WindlassError {
  const own = ownUrl(req, config)?.origin ?? 'this service';
  return forbidden(
    `a browser must send this from a page of ${own}, and ${because} does not say so.`,
    'Behind a proxy let the proxy pass Host on, or set PUBLIC_URL. Programs send an Authorization header instead of the cookie.',
  );
}
