import { and, eq } from 'drizzle-orm';
import type { Request, Response } from 'express';
import type { Db } from '../../shared/database/connect.ts';
import { logins, tokens, users } from '../../shared/database/schema.ts';
import { currentUser } from './current-user.ts';
import { readLoginCookie } from './login-cookies.ts';
import { hashSecret } from './random-secrets.ts';

/**
 * Whether a request's token, link or login expired meanwhile and nobody ended it: upkeep keeps rows of tokens and
 * logins for a day. A link, and an access token of the identity provider, end with the user's password here, too.
 */
export async function hasEndedByItself(db: Db, req: Request, res: Response): Promise<boolean> {
  const { username, version } = currentUser(res);
  const { by, token } = res.locals;
  const isEnabled = and(eq(users.username, username), eq(users.disabled, false));
  const isUnchanged = and(isEnabled, eq(users.version, version));
  if (token !== undefined) {
    const isToken = and(eq(tokens.id, token), eq(tokens.username, username));
    const isUser = by === 'link' ? isUnchanged : isEnabled;
    return isFound(
      db.select({ id: tokens.id }).from(tokens).innerJoin(users, isUser).where(isToken),
    );
  }
  const secret = by === 'cookie' ? readLoginCookie(req) : undefined;
  if (secret) {
    const isLogin = and(
      eq(logins.token, hashSecret(secret)),
      eq(logins.userVersion, users.version),
    );
    return isFound(
      db.select({ id: logins.token }).from(logins).innerJoin(users, isEnabled).where(isLogin),
    );
  }
  return isFound(db.select({ id: users.username }).from(users).where(isUnchanged));
}

const isFound = async (rows: Promise<unknown[]>) => (await rows).length > 0;
