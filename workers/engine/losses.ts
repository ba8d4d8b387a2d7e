import { sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import { LOSS_BACKOFF_SECONDS, MAX_CONSECUTIVE_LOSSES } from '../../shared/jobs/lease.ts';
import { type Claim, leasedBy } from './claim.ts';
import { endJobs, type PendingEnd } from './end-jobs.ts';

const WORKER_LOST = JSON.stringify({
  code: 'worker_lost',
  detail: `Workers were lost: ${MAX_CONSECUTIVE_LOSSES} in a row ended while they ran this job, without getting further.`,
  hint: 'The job may exhaust a worker. See the log of the workers.',
});
const losses = sql`${jobs.consecutiveLosses} + 1`;
const isLast = sql`(${losses} >= ${MAX_CONSECUTIVE_LOSSES})`;
const backoff = sql.raw(`(array[${LOSS_BACKOFF_SECONDS.join(',')}])`);

/** The changes to a job whose attempt was lost: it waits longer after each loss, and fails after 20 in a row. */
export const LOSS = {
  leaseToken: null,
  dispatched: null,
  consecutiveLosses: losses,
  notBefore: sql`now() + make_interval(secs => ${backoff}[least(${losses}, ${LOSS_BACKOFF_SECONDS.length})])`,
  version: sql`${jobs.version} + 1`,
  state: sql`case when ${isLast} then 'failed' else ${jobs.state} end`,
  finished: sql`case when ${isLast} then now() end`,
  error: sql`case when ${isLast} then ${WORKER_LOST}::jsonb end`,
};

/**
 * Records that the attempt under this claim was lost, if the claim still holds. Waits for no lock, because lease
 * renewals come after it. Returns true if the row was locked: then the claim still holds. `set`: further changes.
 */
export async function abandonClaim(
  db: Db,
  claim: Claim,
  set: Partial<JobRow> = {},
): Promise<boolean> {
  await db
    .update(jobs)
    .set({ ...LOSS, ...set })
    .where(sql`${jobs.id} = any(array(${unlocked(db, claim)}))`);
  return rowExists(db, jobs, leasedBy(claim));
}

/** As abandonClaim(), for a job whose end a failover lost. */
export async function endAgain(db: Db, end: PendingEnd): Promise<boolean> {
  await db.transaction(async tx => {
    if ((await unlocked(tx, end.claim)).length > 0) await endJobs(tx, [end]);
  });
  return rowExists(db, jobs, leasedBy(end.claim));
}

/** The claim's row, locked now, where nobody else has locked it. */
const unlocked = (tx: Tx, claim: Claim) =>
  tx.select({ id: jobs.id }).from(jobs).where(leasedBy(claim)).for('update', { skipLocked: true });
