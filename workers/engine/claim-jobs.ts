import { and, eq, exists, getTableColumns, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import { KINDS_WITH_OWN_STATE } from '../../shared/jobs/catalog.ts';
import { isNotLeased } from '../../shared/jobs/job-conditions.ts';
import { isUnderstood, UNDERSTOOD, type Understood } from '../../shared/jobs/payload-versions.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { anyId, givenText, parametersOf, setsLockTimeout, withGiven } from './group-statement.ts';
import { leaseEnd, renewedLease } from './leases.ts';

/** A job just claimed. `ranSeconds` ago, by the database's clock, it was claimed for the first time: 0 is just now. */
export type ClaimedRow = JobRow & { ranSeconds: number };

interface Claimant {
  worker: string;
  understood?: Understood;
}

/**
 * Claims the jobs by compare-and-set, under the lease of this worker, which it renews. The answers are in the order of the
 * entries: undefined where the job has ended, another worker has it, the entry is outdated, or its payload is of a version
 * that is not understood here.
 * One that is locked by something else fails after a second: the worker's lease cannot be renewed meanwhile.
 * The commit does not wait for the disk. An effect outside the database comes after a later commit under this claim that
 * does: that one puts the claim on the disk as well, or finds it lost in a crash of the database and changes nothing.
 */
export async function claimJobs(
  db: Db,
  entries: (QueueEntry & { token: string })[],
  { worker, understood = UNDERSTOOD }: Claimant,
): Promise<(ClaimedRow | undefined)[]> {
  // An entry that came twice: the second finds the job claimed.
  const once = new Map(entries.toReversed().map(entry => [entry.id, entry]));
  const values = { worker, understood: JSON.stringify(understood) };
  const rows = await writeClaims(db).execute({
    ...parametersOf([...once.values()], '1s'),
    ...values,
  });
  const claimed = new Map(rows.map(row => [row.leaseToken, row]));
  return entries.map(({ token }) => claimed.get(token));
}

/** Of kinds whose handlers say whether their jobs run. */
const hasOwnState = sql.raw(
  `kind in (${KINDS_WITH_OWN_STATE.map(kind => `'${kind}'`).join(', ')})`,
);

const writeClaims = prepareOnce(tx => {
  const db = tx as Db;
  const lease = renewedLease(db, sql`select from jobs where id = ${anyId} and ${isNotLeased}`);
  return db
    .with(withGiven(db), lease)
    .update(jobs)
    .set({
      leaseToken: givenText('token'),
      leaseExpires: leaseEnd,
      worker: sql`${sql.placeholder('worker')}`,
      state: sql`case when ${hasOwnState} then ${jobs.state} else 'running' end`,
      started: sql`case when ${hasOwnState} then ${jobs.started} else coalesce(${jobs.started}, now()) end`,
      version: sql`${jobs.version} + 1`,
    })
    .where(
      and(
        sql`${jobs.id} = ${anyId}`,
        sql`${jobs.epoch} = (${givenText('epoch')})::int`,
        isNotLeased,
        isUnderstood(sql`${sql.placeholder('understood')}::jsonb`),
        // The worker's lease is locked before the jobs, as in reclaiming.
        exists(db.select({ worker: lease.worker }).from(lease)),
        sql`set_config('synchronous_commit', 'off', true) = 'off'`,
        setsLockTimeout,
      ),
    )
    .returning({
      ...getTableColumns(jobs),
      ranSeconds: sql<number>`extract(epoch from now() - ${jobs.started})::float8`,
    })
    .prepare('claim_jobs');
});

/** Has a job that is not understood here dispatched again a second later: the queue may give it to a newer worker. */
export async function deferNotUnderstood(
  db: Db,
  { id, epoch }: QueueEntry,
  understood = UNDERSTOOD,
): Promise<void> {
  await db
    .update(jobs)
    .set({ dispatched: null, notBefore: sql`now() + interval '1 second'` })
    .where(
      and(
        eq(jobs.id, id),
        eq(jobs.epoch, epoch),
        isNotLeased,
        sql`not ${isUnderstood(sql`${JSON.stringify(understood)}::jsonb`)}`,
      ),
    );
}
