import type { Request, Response } from 'express';
import { forbidden, WindlassError } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { setSender } from '../http/locals.ts';
import { addressOf, linkOf } from '../http/request-link.ts';
import { isForeignPage, isWrite, refuseCrossSite, requireSameOrigin } from '../http/same-origin.ts';
import { findToken } from './api-tokens.ts';
import { clientAddress } from './client-address.ts';
import type { Identity } from './credential-cache.ts';
import { refuseReadToken } from './current-user.ts';
import { findUserOfExpired } from './expired-credential.ts';
import { findLink } from './links.ts';
import { clearAllLoginCookies, readLoginCookies, setLoginCookies } from './login-cookies.ts';
import { extendLogin, findLogins } from './logins.ts';
import { findTokenUser, isJwt } from './oidc/access-tokens.ts';

/** Limit on the cookies of logins in one request. */
const MAX_COOKIES = 4;

/** What tells who sent a request. */
export type Authenticator = Pick<
  ApiContext,
  'config' | 'database' | 'log' | 'passwords' | 'oidc' | 'credentialCache'
>;

/**
 * After a shorter wait nobody is identified again: with the cache of identities this is the second in which a
 * revocation takes effect.
 */
export const BRIEF_MS = 500;

/** Throws `unauthorized` where nobody is known by what came with the request. */
export async function identifySender(api: Authenticator, { req, res }: Exchange): Promise<void> {
  noteIdentification(api, res);
  const link = linkOf(res);
  const authorization = req.get('Authorization');
  if (link !== undefined) await useLink(api, { req, res, link });
  else if (authorization !== undefined) await useAuthorization(api, { req, res, authorization });
  else await useCookie(api, { req, res });
}

/**
 * Identifies the user again if the body came late: by holding back its last byte a client could use rights that were
 * taken away meanwhile. A token or login that expired during a long body was good when it began, and has present rights.
 */
export async function identifyLateSender(
  api: Authenticator,
  { req, res }: Exchange,
): Promise<void> {
  if (res.locals.isBodyLate) await identifyAgain(api, { req, res });
  else await identifyAfterWait(api, { req, res });
}

/** Identifies the user again after a wait of BRIEF_MS or more for a turn, for memory or for a job. */
export async function identifyAfterWait(api: Authenticator, { req, res }: Exchange): Promise<void> {
  const { identifiedAt } = res.locals;
  const isLong = identifiedAt !== undefined && performance.now() - identifiedAt >= BRIEF_MS;
  if (isLong) await identifyAgain(api, { req, res });
}

/** Identifies the user again: see identifyLateSender(). */
export async function identifyAgain(api: Authenticator, { req, res }: Exchange): Promise<void> {
  const { by, ends, loginEnds } = res.locals;
  noteIdentification(api, res);
  const basic = by === 'password' ? basicCredentials(req.get('Authorization') ?? '') : undefined;
  if (basic) {
    const address = clientAddress(req);
    const user = await api.passwords.checkAgain({ ...basic, address });
    if (!user) throw refusal('the password was changed while the request was under way.');
    res.locals.user = user;
    return;
  }
  const until = ends ?? loginEnds;
  if (until === undefined || until > new Date()) return identifySender(api, { req, res });
  const user = await findUserOfExpired(api.database.db, res);
  if (!user) throw refusal('they were ended while the request was under way.');
  res.locals.user = user;
}

/** Called before the look: a change of credentials that comes meanwhile counts as later. */
function noteIdentification({ credentialCache }: Authenticator, res: Response): void {
  res.locals.identifiedIn = credentialCache.generation;
  res.locals.identifiedAt = performance.now();
}

/** Whether no credentials were changed since the user was identified. */
export const isIdentityCurrent = ({ credentialCache }: Authenticator, res: Response): boolean =>
  res.locals.identifiedIn === credentialCache.generation;

async function useLink(
  { config, database: { db } }: Authenticator,
  { req, res, link }: Exchange & { link: string },
): Promise<void> {
  const found = await findLink(db, config, link, addressOf(req));
  if (!found) throw badLink();
  setSender(res, { ...found, by: 'link' });
  if (req.query.cache !== undefined) throw linkReads();
}

async function useAuthorization(
  api: Authenticator,
  { req, res, authorization }: Exchange & { authorization: string },
): Promise<void> {
  const isBasic = basicCredentials(authorization) !== undefined;
  if (isForeignPage(res) && isBasic) throw noPassword();
  // PasswordVerifier remembers a password for an address, for which no text of the header may stand in.
  const key = JSON.stringify([isBasic ? clientAddress(req) : null, authorization]);
  let identity = api.credentialCache.find(key);
  if (!identity) {
    const { generation } = api.credentialCache;
    identity = await identify(api, { req, res, authorization });
    api.credentialCache.set(key, identity, generation);
  }
  if (identity.by === 'password') refuseCrossSite(req, api.config);
  setSender(res, identity);
  if (isWrite(req) && !makesLink(req)) refuseReadToken(res);
}

async function identify(
  { database, log, oidc, passwords }: Authenticator,
  { req, res, authorization }: Exchange & { authorization: string },
): Promise<Identity> {
  const basic = basicCredentials(authorization);
  if (basic) {
    const { requestId } = res.locals;
    const attempt = { ...basic, address: clientAddress(req), requestId };
    const user = await passwords.check({ ...attempt, auditsSuccess: true });
    if (!user) throw wrongPassword();
    return { user, by: 'password' };
  }
  const bearer = /^Bearer +([\w.~+/=-]+) *$/i.exec(authorization)?.[1];
  if (bearer && oidc && isJwt(bearer)) {
    const found = await findTokenUser(database.db, bearer, oidc);
    return { ...found, by: 'token', scope: 'write' };
  }
  const token = bearer && (await findToken({ database, log }, bearer));
  if (token) return { ...token, by: 'token' };
  throw refusal(
    bearer
      ? 'the token is wrong or has ended.'
      : 'the Authorization header is neither Basic nor Bearer.',
  );
}

async function useCookie(
  { config, database: { db } }: Authenticator,
  { req, res }: Exchange,
): Promise<void> {
  if (isForeignPage(res)) throw refusal('a page of another origin needs a token.', FOR_PAGES);
  const secrets = readLoginCookies(req);
  if (secrets.length === 0) throw refusal();
  const areMany = secrets.length > MAX_COOKIES;
  const found = areMany ? [] : await findLogins(db, secrets, config.LOGIN_TIMEOUT);
  const [login, ...others] = found;
  if (areMany || others.some(({ user }) => user.username !== login?.user.username)) {
    if (!res.headersSent) clearAllLoginCookies({ req, res }, config);
    throw refusal(
      'the cookies of several users were sent, of which none counts.',
      "Log in again. If that does not help, remove this site's cookies.",
    );
  }
  if (!login) throw refusal('the login has ended.');
  const { secret } = login;
  requireSameOrigin(req, config);
  const { user, expires: loginEnds, isFinal } = login;
  setSender(res, {
    user,
    by: 'cookie',
    loginSecret: secret,
    loginEnds,
    ends: isFinal ? loginEnds : undefined,
  });
  // Where the head of this answer is on its way, as that of an export, a later request extends it.
  if (!login.due || res.headersSent) return;
  const expires = await extendLogin(db, secret, config.LOGIN_TIMEOUT);
  if (!expires) return;
  res.locals.loginEnds = expires;
  // A user who is identified several times during a long body gets one pair of cookies.
  res.removeHeader('Set-Cookie');
  setLoginCookies({ req, res }, { config, secret, expires });
}

export function basicCredentials(
  authorization: string,
): { username: string; password: string } | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1];
  if (!encoded) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0
    ? undefined
    : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** A link only reads, so that a token which may only read makes them, too. */
const makesLink = ({ method, path }: Request) => method === 'POST' && path === '/links';

export const linkReads = () =>
  forbidden(
    'a link only reads, and `cache` writes.',
    'Leave `cache` out, or send the request with a token or a login.',
  );

const badLink = () =>
  new WindlassError('unauthorized', {
    detail: 'the link is of another address, or has ended.',
    hint: 'Make another one: POST /api/links. Parameters may be added to its address, and none of them changed.',
    headers: { 'WWW-Authenticate': 'Bearer' },
  });

export function wrongPassword(): WindlassError {
  return refusal('the user name or password is wrong.');
}

const FOR_PAGES = 'Send a token (Authorization: Bearer), or use a link of POST /api/links.';

/** Refuses passwords from such a page: it could try them, and read what a password opens. */
const noPassword = () => forbidden('a page of another origin may not use a password.', FOR_PAGES);

function refusal(
  why?: string,
  hint = 'Send a user name and password (HTTP Basic), a token (Bearer), or POST /api/login first.',
): WindlassError {
  return new WindlassError('unauthorized', { detail: why, hint });
}
