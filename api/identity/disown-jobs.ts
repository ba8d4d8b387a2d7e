import { and, eq, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { jobs, users } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';

/** Jobs of one statement, which may take 10 s: each has many indexes, and its bytes change hands too. */
const BATCH = 5_000;

/** The owner of what a removed user leaves, that a later user of the same name inherits nothing (decision 17). */
export const nobodyAfter = (username: string) => `${username} (removed ${newId()})`;

export interface OwnerChange {
  username: string;
  nobody: string;
}

/** Gives the user's jobs to nobody. */
export async function disownJobs(tx: Tx, change: OwnerChange): Promise<void> {
  let after: string | undefined = '';
  while (after !== undefined) after = await disownBatch(tx, change, sql`id > ${after}`);
}

/** Whether the ended jobs of a user are too many for the transaction that removes the user. */
export const hasManyEndedJobs = async (db: Db, username: string): Promise<boolean> => {
  const [row] = await db.execute(
    sql`select from ${jobs} where owner = ${username} and finished is not null offset ${BATCH} limit 1`,
  );
  return row !== undefined;
};

/** Gives the ended jobs of a disabled user to nobody, a transaction for each batch; none once the user was changed. */
export async function disownEndedJobs(db: Db, change: OwnerChange, version: number): Promise<void> {
  const isUnchanged = and(eq(users.username, change.username), eq(users.version, version));
  const disownNext = (after: string) =>
    db.transaction(async tx => {
      if (!(await rowExists(tx, users, isUnchanged, 'share'))) return undefined;
      return disownBatch(tx, change, sql`finished is not null and id > ${after}`);
    });
  let after: string | undefined = '';
  while (after !== undefined) after = await disownNext(after);
}

/** Returns the last job that was looked at: the batch may include rows that others remove meanwhile. */
async function disownBatch(
  tx: Tx,
  { username, nobody }: OwnerChange,
  which: SQL,
): Promise<string | undefined> {
  const page = sql`select id from ${jobs} where owner = ${username} and ${which} order by id limit ${BATCH}`;
  const [found] = await tx.execute<{ last: string | null }>(sql`
    with page as materialized (${page}), changed as (
      update ${jobs} set owner = ${nobody} where id = any(array(select id from page)) and owner = ${username}
    ) select max(id) as last from page`);
  return found?.last ?? undefined;
}
