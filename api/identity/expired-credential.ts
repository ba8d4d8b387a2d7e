import { and, eq } from 'drizzle-orm';
import type { Response } from 'express';
import type { Db } from '../../shared/database/connect.ts';
import { logins, tokens, users } from '../../shared/database/schema.ts';
import { currentUser } from './current-user.ts';
import { IDENTITY_COLUMNS } from './identity-columns.ts';
import { hashSecret } from './random-secrets.ts';
import type { User } from './user.ts';

/**
 * The user, with present rights, of a request whose token, link or login expired meanwhile. Undefined where somebody
 * ended it: upkeep keeps rows of tokens and logins for a day. A link, and an access token of the identity provider,
 * end with the user's password here, too.
 */
export async function findUserOfExpired(db: Db, res: Response): Promise<User | undefined> {
  const { username, version, administrator } = currentUser(res);
  const { by, token, loginSecret } = res.locals;
  const isEnabled = and(eq(users.username, username), eq(users.disabled, false));
  const isUnchanged = and(isEnabled, eq(users.version, version));
  const find = async () => {
    if (token !== undefined) {
      const isToken = and(eq(tokens.id, token), eq(tokens.username, username));
      const isUser = by === 'link' ? isUnchanged : isEnabled;
      return db.select(IDENTITY_COLUMNS).from(tokens).innerJoin(users, isUser).where(isToken);
    }
    if (by === 'cookie' && loginSecret !== undefined) {
      const isLogin = and(
        eq(logins.token, hashSecret(loginSecret)),
        eq(logins.username, username),
        eq(logins.userVersion, users.version),
      );
      return db.select(IDENTITY_COLUMNS).from(logins).innerJoin(users, isEnabled).where(isLogin);
    }
    return db.select(IDENTITY_COLUMNS).from(users).where(isUnchanged);
  };
  const [user] = await find();
  // A link, and an access token, may have fewer rights than their user.
  return user && { ...user, administrator: user.administrator && administrator };
}
