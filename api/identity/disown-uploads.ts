import { and, eq, notExists, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { jobs, uploads, users } from '../../shared/database/schema.ts';
import { isOpenById } from '../../shared/jobs/job-conditions.ts';
import type { OwnerChange } from './disown-jobs.ts';

/** Uploads of one statement, which may take 10 s: each has several indexes, and its bytes change hands too. */
const BATCH = 5_000;

const ofUser = (username: string) => eq(uploads.owner, username);
/** Those whose parse has ended. The job is counted, so that they are found by their owner's index. */
const ended = (db: Db, username: string) => {
  const itsParse = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.id, uploads.job), isOpenById));
  return and(ofUser(username), sql`num_nonnulls(${uploads.job}) = 1`, notExists(itsParse));
};

/** Gives the user's uploads to nobody. An open one may have too many parts for one statement: upkeep removes it as idle. */
export async function disownUploads(tx: Tx, change: OwnerChange): Promise<void> {
  while (await disownSome(tx, change, ofUser(change.username)));
}

/** Whether the ended uploads of a user are too many for the transaction that removes the user. */
export const hasManyEndedUploads = async (db: Db, username: string): Promise<boolean> => {
  const rows = await db
    .select({ one: sql`1` })
    .from(uploads)
    .where(ended(db, username))
    .offset(BATCH)
    .limit(1);
  return rows.length > 0;
};

/** Gives the ended uploads of a disabled user to nobody, as disownEndedJobs() does with jobs. */
export async function disownEndedUploads(
  db: Db,
  change: OwnerChange,
  version: number,
): Promise<void> {
  const isUnchanged = and(eq(users.username, change.username), eq(users.version, version));
  const disownNext = () =>
    db.transaction(
      async tx =>
        (await rowExists(tx, users, isUnchanged, 'share')) &&
        disownSome(tx, change, ended(db, change.username)),
    );
  while (await disownNext());
}

/** In no order, which no index has: what was changed is not found again. */
async function disownSome(
  tx: Tx,
  { username, nobody }: OwnerChange,
  which: SQL | undefined,
): Promise<boolean> {
  const some = tx.select({ uid: uploads.uid }).from(uploads).where(which).limit(BATCH);
  const changed = await tx.execute(sql`
    update ${uploads} set owner = ${nobody}, accessed = to_timestamp(0)
    where uid = any(array(${some})) and owner = ${username} returning 1`);
  return changed.length > 0;
}
