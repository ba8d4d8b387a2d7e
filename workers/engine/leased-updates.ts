import { and, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import { changesIntent } from '../../shared/jobs/run-intent.ts';
import { type Claim, LeaseRevoked, leasedBy } from './claim.ts';

/** New values, or SQL expressions, of some columns. */
type Changes = Partial<{ [K in keyof JobRow]: unknown }>;

/**
 * This commit waits for the disk, and for a synchronous standby if there is one, even if the role's setting is weaker:
 * the record of an intent must survive a crash of the database.
 */
const isDurable = sql`set_config('synchronous_commit', case current_setting('synchronous_commit')
  when 'remote_apply' then 'remote_apply' else 'on' end, true) <> ''`;

/**
 * Writes to the held row in `tx`, for what no client sees. Throws LeaseRevoked, which rolls the transaction back, when the row
 * is not held.
 */
export async function updateLeased(tx: Tx, claim: Claim, set: Changes): Promise<void> {
  const rows = await tx
    .update(jobs)
    .set(set as Partial<JobRow>)
    .where(and(leasedBy(claim), changesIntent(set) ? isDurable : undefined))
    .returning({ id: jobs.id });
  if (rows.length === 0) throw new LeaseRevoked(claim.id);
}

/** As updateLeased(), with a new version: for what clients see. */
export async function updateLeasedVisibly(tx: Tx, claim: Claim, set: Changes): Promise<void> {
  await updateLeased(tx, claim, { ...set, version: sql`${jobs.version} + 1` });
}

/** Releases the job for any worker to claim after so many seconds. It does not count as a loss. */
export async function releaseJob(
  db: Db,
  claim: Claim,
  afterSeconds: number,
  set: Partial<JobRow> = {},
): Promise<void> {
  // Without the type PostgreSQL takes it for an integer, like the 5 beside it, and refuses fractions.
  const delay = sql`${afterSeconds}::float8`;
  await db
    .update(jobs)
    .set({
      ...set,
      leaseToken: null,
      dispatched: null,
      // Set without a delay, too: the job has waited since then.
      // What was cancelled meanwhile is due at once.
      notBefore: sql`now() + make_interval(secs => case when ${jobs.cancelRequested} is null then ${delay} else least(${delay}, 5) end)`,
      version: sql`${jobs.version} + 1`,
    })
    .where(leasedBy(claim));
}
