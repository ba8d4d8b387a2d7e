import { and, eq } from 'drizzle-orm';
import { USER_COLUMNS } from '../../../shared/database/api-columns.ts';
import type { Db } from '../../../shared/database/connect.ts';
import { users } from '../../../shared/database/schema.ts';
import type { User } from '../user.ts';
import { type ClaimRule, meetsRule, requireUser } from './claims.ts';
import { CLOCK_SECONDS, type IdentityProvider } from './identity-provider.ts';
import { badToken } from './provider-errors.ts';

/** The compact form of a signed JWT (RFC 7515, 7.1); an API token has no dots. */
export const isJwt = (token: string) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);

/** The latest Date in milliseconds (ECMA-262, 21.4.1.1): some tokens are meant to last for ever. */
const LAST_MOMENT = 8.64e15;

/** The user of an access token of the identity provider, who must have logged in before. Throws `unauthorized` and `forbidden`. */
export async function findTokenUser(
  db: Db,
  token: string,
  {
    provider,
    users: allowed,
    administrators,
  }: {
    provider: IdentityProvider;
    users: ClaimRule | undefined;
    administrators: ClaimRule | undefined;
  },
): Promise<{ user: User; ends: Date }> {
  const { issuer, subject, claims } = await provider.verifyAccessToken(token);
  requireUser(claims, allowed);
  const [row] = await db
    .select(USER_COLUMNS)
    .from(users)
    .where(and(eq(users.issuer, issuer), eq(users.subject, subject), eq(users.disabled, false)));
  if (!row) throw badToken('is of nobody who may use this service; log in there once in a browser');
  const { username, version } = row;
  // A login may be long ago: rights that the provider gives must be in the token, too.
  const administrator = row.administrator && (!administrators || meetsRule(claims, administrators));
  const expires = Number(claims.exp) * 1_000;
  // An expired one is still accepted for a while: a link made by it must not be over from the start.
  const ends = new Date(
    Math.min(expires > Date.now() ? expires : expires + CLOCK_SECONDS * 1_000, LAST_MOMENT),
  );
  return { user: { username, administrator, version }, ends };
}
