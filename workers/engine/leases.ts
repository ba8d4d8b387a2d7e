import { and, eq, isNotNull, type SQL, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Db } from '../../shared/database/connect.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { jobs, leases } from '../../shared/database/schema.ts';
import { hasSlot, isOpenById } from '../../shared/jobs/job-conditions.ts';
import { LEASE_SECONDS } from '../../shared/jobs/lease.ts';
import type { Claim } from './claim.ts';

/** By the database's function clock(), which tests move: no lease is reclaimed by it. */
const leaseEnd = sql.raw(`clock() + interval '${LEASE_SECONDS} seconds'`);

/** Creates or renews the worker's lease. Reclaiming locks the row, so the first of the two wins. */
const writeLease = (db: Db, where: SQL = sql`select`) =>
  db
    .insert(leases)
    .select(sql`select ${sql.placeholder('worker')}::text, ${leaseEnd} where exists (${where})`)
    .onConflictDoUpdate({
      target: leases.worker,
      set: { expires: leaseEnd },
      // Not flushed to the disk: after a crash of the database every worker can renew before a lease is reclaimed.
      setWhere: sql`set_config('synchronous_commit', 'off', true) = 'off'`,
    });

/** A CTE that renews the worker's lease in the statement that claims jobs, if that claims any. */
export const renewedLease = (db: Db, where: SQL) =>
  db.$with('lease').as(writeLease(db, where).returning({ worker: leases.worker }));

const renew = prepareOnce(db => writeLease(db).prepare('renew_lease'));

/** What the row of a job says whose claim still holds. */
interface Holding {
  /** Its cancel was requested. */
  isCancelled: boolean;
  /** When the reader of streamed output last gave a sign: see reader-signs.ts. */
  readerSeen: Date | null;
}

/**
 * Renews the worker's lease, then reads which of these claims still hold, and whether somebody still wants the job of
 * each. A worker whose lease had expired may have lost some. The read waits for no lock.
 */
export async function renewLease(
  db: Db,
  worker: string,
  claims: Claim[],
): Promise<Map<string, Holding>> {
  await renew(db).execute({ worker });
  if (claims.length === 0) return new Map();
  const isOurs = and(
    sql`${jobs.id} = ${anyOf(claims.map(({ id }) => id))}`,
    sql`${jobs.leaseToken} = ${anyOf(claims.map(({ token }) => token))}`,
    isOpenById,
  );
  const rows = await db
    .select({
      id: jobs.id,
      isCancelled: sql<boolean>`${jobs.cancelRequested} is not null`,
      readerSeen: jobs.readerSeen,
    })
    .from(jobs)
    .where(isOurs);
  return new Map(rows.map(row => [row.id, row]));
}

/** All claims that hold by the database in this worker's name. */
export async function listClaims(db: Db, worker: string): Promise<Claim[]> {
  const rows = await db
    .select({ id: jobs.id, token: jobs.leaseToken })
    .from(jobs)
    .where(and(hasSlot, eq(jobs.worker, worker), isNotNull(jobs.leaseToken)));
  return rows.flatMap(({ id, token }) => (token === null ? [] : { id, token }));
}
