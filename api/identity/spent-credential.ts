import { and, eq } from 'drizzle-orm';
import type { Request, Response } from 'express';
import type { Db } from '../../shared/database/connect.ts';
import { logins, tokens, users } from '../../shared/database/schema.ts';
import { currentUser } from './current-user.ts';
import { readLoginCookie } from './login-cookies.ts';
import { hashSecret } from './random-secrets.ts';

/**
 * Whether a request's token, or login, that has ended by itself meanwhile was ended by nobody: upkeep keeps the rows of both for
 * a day. An access token of the identity provider ends with the user's password here, too.
 */
export async function hasEndedByItself(db: Db, req: Request, res: Response): Promise<boolean> {
  const { username, version } = currentUser(res);
  const { by, token } = res.locals;
  const isEnabled = and(eq(users.username, username), eq(users.disabled, false));
  if (token !== undefined) {
    const isToken = and(eq(tokens.id, token), eq(tokens.username, username));
    return isFound(
      db.select({ id: tokens.id }).from(tokens).innerJoin(users, isEnabled).where(isToken),
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
  const isUnchanged = and(isEnabled, eq(users.version, version));
  return isFound(db.select({ id: users.username }).from(users).where(isUnchanged));
}

const isFound = async (rows: Promise<unknown[]>) => (await rows).length > 0;
