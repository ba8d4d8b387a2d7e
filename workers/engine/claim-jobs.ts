import { and, eq, exists, getTableColumns, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import { KINDS_WITH_OWN_STATE } from '../../shared/jobs/catalog.ts';
import { isNotLeased, kindIsOneOf } from '../../shared/jobs/job-conditions.ts';
import {
  isSupported,
  SUPPORTED_VERSIONS,
  type SupportedVersions,
} from '../../shared/jobs/payload-versions.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { anyId, argumentsOf, givenText, setsLockTimeout, withGiven } from './group-statement.ts';
import { renewedLease } from './leases.ts';

/** A job just claimed. `ranSeconds` ago, by the database's clock, it was claimed for the first time: 0 is just now. */
export type ClaimedRow = JobRow & { ranSeconds: number };

interface Claimant {
  worker: string;
  supported?: SupportedVersions;
}

/**
 * Claims different jobs by compare-and-set and renews this worker's lease. Returns, for each entry, undefined if the job has
 * ended or is claimed, or the entry is outdated or not supported.
 *
 * The commit does not wait for the disk: an effect outside the database needs a later durable commit under this claim
 * first (decision 21). A locked job fails after a second, because the worker's lease is locked meanwhile.
 */
export async function claimJobs(
  db: Db,
  entries: (QueueEntry & { token: string })[],
  { worker, supported = SUPPORTED_VERSIONS }: Claimant,
): Promise<(ClaimedRow | undefined)[]> {
  const values = { worker, supported: JSON.stringify(supported) };
  const rows = await writeClaims(db).execute({
    ...argumentsOf(entries, '1s'),
    ...values,
  });
  const claimed = new Map(rows.map(row => [row.leaseToken, row]));
  return entries.map(({ token }) => claimed.get(token));
}

/** Kinds whose handlers set the state of their jobs. */
const hasOwnState = kindIsOneOf(KINDS_WITH_OWN_STATE);

const writeClaims = prepareOnce(db => {
  const lease = renewedLease(db, sql`select from jobs where id = ${anyId} and ${isNotLeased}`);
  return db
    .with(withGiven(db), lease)
    .update(jobs)
    .set({
      leaseToken: givenText('token'),
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
        isSupported(sql`${sql.placeholder('supported')}::jsonb`),
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

/** Requeues, a second later, a job whose payload version this worker does not support: a newer worker may get it. */
export async function deferUnsupported(db: Db, { id, epoch }: QueueEntry): Promise<void> {
  await db
    .update(jobs)
    .set({ dispatched: null, notBefore: sql`now() + interval '1 second'` })
    .where(
      and(
        eq(jobs.id, id),
        eq(jobs.epoch, epoch),
        isNotLeased,
        sql`not ${isSupported(sql`${JSON.stringify(SUPPORTED_VERSIONS)}::jsonb`)}`,
      ),
    );
}
