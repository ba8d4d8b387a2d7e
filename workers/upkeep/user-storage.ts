import { and, asc, eq, gt, lt, notExists, type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Tx } from '../../shared/database/connect.ts';
import {
  artifacts,
  bookmarks,
  cacheEntries,
  jobs,
  storageChanges,
  uploads,
  userStorage,
  users,
  views,
} from '../../shared/database/schema.ts';
import { tryLock } from '../../shared/database/try-lock.ts';
import { RESULT_KEPT } from '../../shared/jobs/result-retention.ts';
import type { WorkerContext } from '../context.ts';

type Context = Pick<WorkerContext, 'database' | 'stopping'>;

/** Rows in one statement, which may take 10 s. */
const BATCH = 5_000;
const PAGE = 50_000;
/** Each count is made anew so often: rows that somebody changed without triggers, as in a repair, make it wrong until then. */
const RECOUNTED = sql`interval '7 days'`;

const STORED = [artifacts, bookmarks, cacheEntries, views];

/** Adds due changes to the counts, so that there are never many of them. */
export async function addStorageChanges({ database: { db }, stopping }: Context): Promise<void> {
  const due = sql`select ctid from ${storageChanges} where due <= now() order by due, id limit ${BATCH}`;
  const addSome = async (tx: Tx) => {
    if (!(await mayCount(tx))) return 0;
    const [row] = await tx.execute<{ found: number }>(sql`
      with gone as (
        delete from ${storageChanges} where ctid = any(array(${due})) returning owner, bytes
      ), added as (
        insert into ${userStorage} as known (owner, bytes)
        select owner, sum(bytes) from gone group by owner
        on conflict (owner) do update set bytes = known.bytes + excluded.bytes
      )
      select count(*)::int as found from gone`);
    return row?.found ?? 0;
  };
  while (!stopping.aborted && (await db.transaction(addSome)) === BATCH);
}

/**
 * Counts from the rows what users store who have no count, after the migration or a restore; one user after the other,
 * each again after a week.
 */
export async function countStorage({ database: { db }, stopping }: Context): Promise<void> {
  const isDue = sql`${userStorage.counted} is null or ${lt(userStorage.counted, sql`now() - ${RECOUNTED}`)}`;
  const next = (after: string) =>
    db
      .select({ owner: users.username })
      .from(users)
      .leftJoin(userStorage, eq(userStorage.owner, users.username))
      .where(and(gt(users.username, after), isDue))
      .orderBy(asc(users.username))
      .limit(1);
  const failures: unknown[] = [];
  for (let after = ''; !stopping.aborted; ) {
    const [user] = await next(after);
    if (!user) break;
    after = user.owner;
    // One snapshot: it sees the rows and the changes of a transaction together.
    const count = (tx: Tx) => countUser(tx, user.owner, stopping);
    try {
      if (!(await db.transaction(count, { isolationLevel: 'repeatable read' }))) return;
    } catch (error) {
      // The others are counted nevertheless.
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function countUser(tx: Tx, owner: string, stopping: AbortSignal): Promise<boolean> {
  if (!(await mayCount(tx))) return false;
  await tx.delete(storageChanges).where(eq(storageChanges.owner, owner));
  let bytes = await countRows(tx, owner);
  // Results of 0.1.0 have no `stored`.
  for (let after = ''; ; ) {
    stopping.throwIfAborted();
    const page = sql`select id, kind, result, finished, stdout_bytes + stderr_bytes + coalesce(payload_bytes, 0) as bytes
      from ${jobs} where owner = ${owner} and id > ${after} order by id limit ${PAGE}`;
    const [found] = await tx.execute<{ last: string | null; bytes: number }>(sql`
      with page as materialized (${page}), videos as (
        select coalesce(result ->> 'stored', result ->> 'bytes')::bigint as bytes, finished + ${RESULT_KEPT} as due from page
        where kind = 'video' and result ->> 'object' is not null and finished > now() - ${RESULT_KEPT}
      ), removals as (
        insert into ${storageChanges} (owner, bytes, due) select ${owner}, -bytes, due from videos
      )
      select (select max(id) from page) as last, (
        coalesce((select sum(bytes) from page), 0) + coalesce((select sum(bytes) from videos), 0)
      )::float8 as bytes`);
    if (!found?.last) break;
    bytes += found.bytes;
    after = found.last;
  }
  await tx
    .insert(userStorage)
    .values({ owner, bytes, counted: sql`now()` })
    .onConflictDoUpdate({ target: userStorage.owner, set: { bytes, counted: sql`now()` } });
  return true;
}

/** What does not belong to jobs. */
async function countRows(tx: Tx, owner: string): Promise<number> {
  const sums: SQL[] = [
    sql`select sum(bytes) as bytes from ${uploads} where owner = ${owner}`,
    ...STORED.map(table => sql`select sum(size) from ${table} where stored_by = ${owner}`),
  ];
  const [row] = await tx.execute<{ bytes: number }>(
    sql`select coalesce(sum(bytes), 0)::float8 as bytes from (${sql.join(sums, sql` union all `)}) as stored`,
  );
  return row?.bytes ?? 0;
}

/** What removed users left in projects counts for nobody, so that a later user of that name starts at zero. */
export async function forgetStorageOfRemoved({
  database: { db },
  stopping,
}: Context): Promise<void> {
  const itsUser = db
    .select({ username: users.username })
    .from(users)
    .where(eq(users.username, userStorage.owner));
  const removed = await db
    .select({ owner: userStorage.owner })
    .from(userStorage)
    .where(notExists(itsUser))
    .limit(100);
  for (const { owner } of removed) {
    for (const table of STORED) while (!stopping.aborted && (await disown(db, table, owner)));
    if (stopping.aborted) return;
    await db.transaction(async tx => {
      if (!(await mayCount(tx))) return;
      await tx.delete(storageChanges).where(eq(storageChanges.owner, owner));
      await tx.delete(userStorage).where(eq(userStorage.owner, owner));
    });
  }
}

/** Whether there were rows. */
async function disown(db: Tx, table: PgTable, owner: string): Promise<boolean> {
  const some = sql`select ctid from ${table} where stored_by = ${owner} limit ${BATCH} for update skip locked`;
  const rows = await db.execute(
    sql`update ${table} set stored_by = null where ctid = any(array(${some})) returning 1`,
  );
  return rows.length > 0;
}

/** One at a time counts, until the end of its transaction. */
const mayCount = (tx: Tx) => tryLock(tx, 'userStorage');
