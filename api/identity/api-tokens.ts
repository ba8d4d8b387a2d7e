import { and, count, eq, gt, isNull, or, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { tokens, users } from '../../shared/database/schema.ts';
import { timestampOf } from '../../shared/database/timestamp.ts';
import { writeOrLog } from '../../shared/database/write-or-log.ts';
import { conflict } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { ServiceContext } from '../../shared/service/open-service.ts';
import type { WriteAudit } from './audit.ts';
import { IDENTITY_COLUMNS } from './identity-columns.ts';
import { lockUnchangedUser } from './lock-user.ts';
import { hashSecret, isSecret, newSecret } from './random-secrets.ts';
import type { User } from './user.ts';

/** By this prefix people and secret scanners recognize a leaked token. */
const TOKEN_PREFIX = 'wdl_';
/** Tokens that one user may have. */
const MAX_TOKENS = 100;

export type Scope = 'read' | 'write';
export type TokenRow = typeof tokens.$inferSelect;

/** A token that has not expired. Expired ones are refused and not listed; upkeep removes them. */
export const isUnexpired = or(isNull(tokens.expires), gt(tokens.expires, sql`now()`));

/** Creates a token and returns its text, of which only a hash is stored. Throws `conflict` when there are too many. */
export async function createToken(
  db: Db,
  user: User,
  given: { name: string; scope: Scope; expires?: Date },
  audit: WriteAudit,
): Promise<{ id: string; token: string }> {
  const token = TOKEN_PREFIX + newSecret();
  const id = newId();
  const { username } = user;
  await db.transaction(async tx => {
    await lockUnchangedUser(tx, user);
    const [open] = await tx
      .select({ n: count() })
      .from(tokens)
      .where(and(eq(tokens.username, username), isUnexpired));
    if ((open?.n ?? 0) >= MAX_TOKENS)
      throw conflict(
        `you have ${MAX_TOKENS} tokens.`,
        'Delete one: GET /api/users/-/tokens lists them.',
      );
    const expires = given.expires && timestampOf(given.expires.toISOString());
    await tx.insert(tokens).values({ ...given, expires, id, username, hash: hashSecret(token) });
    await audit(tx, 'token.create', id);
  });
  return { id, token };
}

type Context = Pick<ServiceContext, 'database' | 'log'>;

const thisHour = sql`date_trunc('hour', now(), 'UTC')`;

/** One write an hour. The request itself succeeds without it. */
async function recordUse({ database, log }: Context, token: string): Promise<void> {
  const use = database.db
    .update(tokens)
    .set({ used: thisHour })
    .where(eq(tokens.hash, hashSecret(token)));
  await writeOrLog(log, 'recording the use of a token', use);
}

/** The token's user, by one query, or two for the first use in an hour. CredentialCache keeps the answer for half a second. */
export async function findToken(
  context: Context,
  token: string,
): Promise<{ user: User; scope: Scope; token: string; ends?: Date } | undefined> {
  if (!token.startsWith(TOKEN_PREFIX) || !isSecret(token.slice(TOKEN_PREFIX.length)))
    return undefined;
  const [found] = await context.database.db
    .select({
      ...IDENTITY_COLUMNS,
      scope: tokens.scope,
      id: tokens.id,
      expires: tokens.expires,
      isDue: sql<boolean>`${tokens.used} is distinct from ${thisHour}`,
    })
    .from(tokens)
    .innerJoin(users, and(eq(users.username, tokens.username), eq(users.disabled, false)))
    .where(and(eq(tokens.hash, hashSecret(token)), isUnexpired));
  if (!found) return undefined;
  const { scope, id, expires, isDue, ...user } = found;
  if (isDue) await recordUse(context, token);
  return { user, scope, token: id, ends: expires ?? undefined };
}
