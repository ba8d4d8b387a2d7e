import { eq } from 'drizzle-orm';
import type { Request } from 'express';
import { USER_COLUMNS, type UserRecord } from '../../shared/database/api-columns.ts';
import type { Db } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { conflict, notFound } from '../../shared/errors/errors.ts';
import { storedBytes } from '../../shared/quotas/user-storage.ts';
import type { Party } from '../concurrency/fair-queue.ts';
import { checkIfMatch, checkIfNoneMatch, versionTag } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { clientAddress } from './client-address.ts';
import { currentUser } from './current-user.ts';

export const ACCOUNT_COLUMNS = { ...USER_COLUMNS, stored: storedBytes(users.username) };

/** A user with the bytes that count for them. */
export type Account = UserRecord & { stored: number };

/** Throws `not_found`. */
export async function findAccount(db: Db, username: string): Promise<Account> {
  const [row] = await db.select(ACCOUNT_COLUMNS).from(users).where(eq(users.username, username));
  if (!row) throw unknownUser(username);
  return row;
}

/** What is counted is seen in a record, and is nothing that a write of the record could undo. */
export const accountTag = (row: Account, ...counted: number[]) =>
  versionTag(row, [row.stored, ...counted].map(number => `.${number}`).join(''));

/** If-Match and If-None-Match of a write. */
export function checkUserVersion(req: Request, row: UserRecord): void {
  const withoutCounted = (tag: string) => tag.replace(/^("[^".]*)(\.\d+)+"$/, '$1"');
  checkIfMatch(req, versionTag(row), withoutCounted);
  checkIfNoneMatch(req, versionTag(row), withoutCounted);
}

export const unknownUser = (username: string) =>
  notFound(`there is no user ${username}.`, 'GET /api/users lists them.');

export const changedMeanwhile = () =>
  conflict(
    'somebody else changed this user at the same time.',
    'Get it again and repeat the change.',
  );

/** The administrator who asks always remains one. */
export const notOnYourself = (what: string) =>
  conflict(`you cannot ${what}.`, 'Have another administrator do it.');

/** Who pays for the hash of a password. */
export const partyOf = ({ req, res }: Exchange): Party => ({
  account: currentUser(res).username,
  address: clientAddress(req),
});
