import { and, desc, eq, gt, inArray, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { logins, users } from '../../shared/database/schema.ts';
import type { WriteAudit } from './audit.ts';
import { IDENTITY_COLUMNS } from './identity-columns.ts';
import { hashSecret, newSecret } from './random-secrets.ts';
import { revoke } from './revocations.ts';
import type { User } from './user.ts';

/** Longest life of a login, from its password on, unless LOGIN_TIMEOUT is longer. */
const MAX_LOGIN_SECONDS = 7 * 86_400;
/** A login is extended at most once in this time. */
const MIN_EXTENSION_SECONDS = 60;
/** Open logins of one user; a further one ends the oldest. */
const MAX_OPEN_LOGINS = 100;

export interface Login {
  secret: string;
  user: User;
  /** When it ends unless it is extended. */
  expires: Date;
  /** Whether a use now extends it. */
  due: boolean;
  /** Whether the identity provider made it: it is never extended, so that a user who was removed there is out when it ends. */
  isFinal: boolean;
}

/** When a login that is used now ends; `timeout` is LOGIN_TIMEOUT. */
const extended = (timeout: number) => {
  const longest = Math.max(MAX_LOGIN_SECONDS, timeout);
  return sql<Date>`least(now() + make_interval(secs => ${timeout}), ${logins.created} + make_interval(secs => ${longest}))`;
};

/** Writes audit entries in the name of a login's user: a cookie may come beside other credentials. */
type AuditAs = (username: string) => WriteAudit;

/**
 * Begins a login for a user who was just identified, and ends the logins whose secrets are `instead`. Undefined when the
 * user was changed or removed meanwhile. The streams of events of the users in `ended` must end, too.
 */
export async function beginLogin(
  db: Db,
  { username, version }: User,
  { timeout, instead, auditAs }: { timeout: number; instead: string[]; auditAs: AuditAs },
): Promise<{ secret: string; expires: Date; ended: Set<string> } | undefined> {
  const secret = newSecret();
  return db.transaction(async tx => {
    // Serializes logins of one user; a concurrent removal of the user waits, and then removes this login too.
    const [user] = await tx
      .select({ username: users.username })
      .from(users)
      .where(and(eq(users.username, username), eq(users.version, version)))
      .for('no key update');
    if (!user) return undefined;
    const replaced = await endLogins(tx, hasSecret(instead), auditAs);
    const [login] = await tx
      .insert(logins)
      .values({
        token: hashSecret(secret),
        username,
        userVersion: version,
        expires: sql`now() + make_interval(secs => ${timeout})`,
      })
      .returning({ expires: logins.expires });
    const surplus = tx
      .select({ token: logins.token })
      .from(logins)
      .where(and(eq(logins.username, username), gt(logins.expires, sql`now()`)))
      .orderBy(desc(logins.created), desc(logins.token))
      .offset(MAX_OPEN_LOGINS);
    const oldest = await endLogins(tx, inArray(logins.token, surplus), auditAs);
    await auditAs(username)(tx, 'login');
    return login && { secret, expires: login.expires, ended: new Set([...replaced, ...oldest]) };
  });
}

/** The open logins of these secrets, in their order. One query and no cache: every process sees an end at once. */
export async function findLogins(db: Db, secrets: string[], timeout: number): Promise<Login[]> {
  const slack = Math.min(MIN_EXTENSION_SECONDS, timeout / 10);
  const found = await db
    .select({
      token: logins.token,
      ...IDENTITY_COLUMNS,
      expires: logins.expires,
      isFinal: sql<boolean>`${users.issuer} is not null`,
      due: sql<boolean>`${users.issuer} is null and ${logins.expires} < ${extended(timeout)} - make_interval(secs => ${slack})`,
    })
    .from(logins)
    // A changed password ends the login.
    .innerJoin(
      users,
      and(
        eq(users.username, logins.username),
        eq(users.version, logins.userVersion),
        eq(users.disabled, false),
      ),
    )
    .where(and(hasSecret(secrets), gt(logins.expires, sql`now()`)));
  return secrets.flatMap(secret => {
    const token = hashSecret(secret);
    return found
      .filter(login => login.token === token)
      .map(({ token: _, expires, due, isFinal, ...user }) => ({
        secret,
        user,
        expires,
        due,
        isFinal,
      }));
  });
}

/** Extends a login that is used. Returns its new end, or undefined when it has ended meanwhile. */
export async function extendLogin(
  db: Db,
  secret: string,
  timeout: number,
): Promise<Date | undefined> {
  const [login] = await db
    .update(logins)
    .set({ expires: extended(timeout) })
    .where(and(eq(logins.token, hashSecret(secret)), gt(logins.expires, sql`now()`)))
    .returning({ expires: logins.expires });
  return login?.expires;
}

/** Ends the logins of these secrets. The result names their users. */
export function endLoginsOf(db: Db, secrets: string[], auditAs: AuditAs): Promise<Set<string>> {
  return db.transaction(tx => endLogins(tx, hasSecret(secrets), auditAs));
}

const hasSecret = (secrets: string[]) => inArray(logins.token, secrets.map(hashSecret));

/** Ends logins, and tells of those that had not ended by themselves. The result names their users. */
async function endLogins(tx: Tx, which: SQL, auditAs: AuditAs): Promise<Set<string>> {
  const version = tx
    .select({ version: users.version })
    .from(users)
    .where(eq(users.username, logins.username));
  const ended = await tx
    .delete(logins)
    .where(which)
    .returning({
      username: logins.username,
      isOver: sql<boolean>`${logins.expires} <= now() or ${logins.userVersion} <> (${version})`,
    });
  for (const { username, isOver } of ended) if (!isOver) await auditAs(username)(tx, 'logout');
  const names = new Set(ended.map(({ username }) => username));
  for (const username of names) await revoke(tx, username);
  return names;
}
