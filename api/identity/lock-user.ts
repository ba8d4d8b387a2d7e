import { and, asc, eq, inArray } from 'drizzle-orm';
import type { Response } from 'express';
import { USER_COLUMNS, type UserRecord } from '../../shared/database/api-columns.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { unknownUser } from './account.ts';
import { assertAdministrator, currentUser } from './current-user.ts';
import type { User } from './user.ts';

/**
 * Locks a user's row, before any other lock (see removeUser()). It serializes the creation of things that are limited per
 * user, and the removal of the user. Throws `unauthorized` when the user is gone or disabled.
 */
export async function lockUser(tx: Tx, username: string): Promise<{ version: number }> {
  const [user] = await tx
    .select({ version: users.version })
    .from(users)
    .where(and(eq(users.username, username), eq(users.disabled, false)))
    .for('no key update');
  if (!user) throw new WindlassError('unauthorized');
  return user;
}

/**
 * Like lockUser(), for a request that makes a credential, such as a token. Throws `unauthorized` also when the user was changed
 * since the request came: its own credential is then revoked, and must not leave another one behind.
 */
export async function lockUnchangedUser(tx: Tx, { username, version }: User): Promise<void> {
  const locked = await lockUser(tx, username);
  if (locked.version !== version) throw new WindlassError('unauthorized');
}

/**
 * Locks the rows of these users until the transaction commits, so that nothing that names one goes to a later user of the same
 * name. Returns the names that exist. Rows are locked in the order of their names, before anything else of a user, to avoid
 * deadlocks.
 */
export async function lockNamed(tx: Tx, usernames: string[]): Promise<Set<string>> {
  const rows = await tx
    .select({ username: users.username })
    .from(users)
    .where(inArray(users.username, [...new Set(usernames)]))
    .orderBy(asc(users.username))
    .for('key share');
  return new Set(rows.map(({ username }) => username));
}

/**
 * Locks the row of the administrator who asks until what they change is written. Throws as assertStillAdministrator() does.
 */
export async function lockAdministrator(tx: Tx, asks: User): Promise<void> {
  const [row] = await tx
    .select(RIGHTS)
    .from(users)
    .where(eq(users.username, asks.username))
    .for('share');
  assertStillAdministrator(row, asks);
}

const RIGHTS = {
  administrator: users.administrator,
  disabled: users.disabled,
  version: users.version,
};

/**
 * Checks the locked row of the administrator who asks: a change may have taken their rights since the request came. Throws
 * `unauthorized` and `forbidden`.
 */
function assertStillAdministrator(
  row: { administrator: boolean; disabled: boolean; version: number } | undefined,
  asks: User,
): asserts row {
  if (!row || row.disabled) throw new WindlassError('unauthorized');
  assertAdministrator(row);
  if (row.version !== asks.version) throw new WindlassError('unauthorized');
}

/**
 * Locks the rows of a user, of another one if given, and of the administrator who asks. Checks that they are still an
 * administrator, so that one is left even where two remove each other at once. Rows are locked in the order of their names, to
 * avoid deadlocks. Throws `not_found`.
 */
export async function lockWithAdministrator(
  tx: Tx,
  res: Response,
  name: string,
  other = name,
): Promise<UserRecord> {
  const me = currentUser(res);
  const rows = await tx
    .select(USER_COLUMNS)
    .from(users)
    .where(inArray(users.username, [me.username, name, other]))
    .orderBy(asc(users.username))
    .for('update');
  assertStillAdministrator(
    rows.find(({ username }) => username === me.username),
    me,
  );
  const row = rows.find(({ username }) => username === name);
  if (!row) throw unknownUser(name);
  return row;
}
