import type { CookieOptions, Request } from 'express';
import type { Config } from '../../shared/settings/config.ts';
import type { Exchange } from '../http/exchange.ts';
import { publicPath } from '../http/public-url.ts';
import { isSecret } from './random-secrets.ts';

/** The cookie with the login's secret; scripts cannot read it. */
const SECRET_COOKIE = 'serviceauth';
/** The cookie for scripts: when the login ends unless it is used before, as ISO 8601 in UTC. */
const END_COOKIE = 'servicetimeout';
/** Limit on the parts of a path, whose beginnings may all be paths of cookies. */
const MAX_PARTS = 4;

/**
 * The secrets of all logins in the request's cookies. Several come from services whose paths contain each other, or from a page
 * of a sibling name or another port, which can plant a cookie. No library: cookies of a fixed form are read.
 */
export function readLoginCookies(req: Request): string[] {
  const secrets = new Set<string>();
  // RFC 6265, 5.4: pairs are separated by a semicolon, and the name ends at the first `=`.
  for (const pair of (req.get('Cookie') ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals < 0 || pair.slice(0, equals).trim() !== SECRET_COOKIE) continue;
    const value = pair.slice(equals + 1).trim();
    if (isSecret(value)) secrets.add(value);
  }
  return [...secrets];
}

/** Both cookies, for as long as the login lasts. */
export function setLoginCookies(
  { req, res }: Exchange,
  { config, secret, expires }: { config: Config; secret: string; expires: Date },
): void {
  const options = {
    ...cookieOptions(req, config),
    maxAge: Math.max(0, expires.getTime() - Date.now()),
  };
  res.cookie(SECRET_COOKIE, secret, { ...options, httpOnly: true });
  res.cookie(END_COOKIE, expires.toISOString(), options);
}

export function clearLoginCookies(
  { req, res }: Exchange,
  config: Config,
  path = cookiePath(config),
): void {
  const options = { ...cookieOptions(req, config), path };
  res.clearCookie(SECRET_COOKIE, { ...options, httpOnly: true });
  res.clearCookie(END_COOKIE, options);
}

/** Clears those of others, too, under the paths with which a browser most likely sends them here. */
export function clearAllLoginCookies({ req, res }: Exchange, config: Config): void {
  const paths = new Set(['/', cookiePath(config)]);
  let path = '';
  const [address = ''] = req.originalUrl.split('?');
  for (const part of `${publicPath(config)}${address}`.split('/').slice(1, 1 + MAX_PARTS)) {
    // A cookie's path has no other characters that a browser sends as they are.
    if (!/^[\w.~%-]+$/.test(part)) break;
    path += `/${part}`;
    for (const each of [path, `${path}/`]) paths.add(each);
  }
  for (const each of paths) clearLoginCookies({ req, res }, config, each);
}

const cookiePath = (config: Config) => publicPath(config) || '/';

function cookieOptions(req: Request, config: Config): CookieOptions {
  return {
    path: cookiePath(config),
    sameSite: 'lax',
    // `req.secure` is X-Forwarded-Proto's word where the proxy is trusted.
    secure: config.PUBLIC_URL ? new URL(config.PUBLIC_URL).protocol === 'https:' : req.secure,
    // Both values are cookie-octets (RFC 6265, 4.1.1), the colons of a time included: nothing needs escaping.
    encode: String,
  };
}
