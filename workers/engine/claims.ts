import { and, eq, exists, getTableColumns, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { type JobRow, type JobState, jobs } from '../../shared/database/schema.ts';
import { type ErrorRecord, WindlassError } from '../../shared/errors.ts';
import { newId } from '../../shared/ids.ts';
import { isNotEnded, isNotLeased } from '../../shared/jobs/job-conditions.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { isUnderstood, UNDERSTOOD, type Understood } from '../../shared/jobs/understood.ts';
import { leaseEnd, renewedLease } from './leases.ts';

/** A claimed job and its fencing token: every write checks the token, and a write with an old one changes nothing. */
export interface Claim {
  id: string;
  token: string;
}

/** Thrown when a write finds that another worker has the lease, or nobody: the work must stop. */
export class LeaseLost extends Error {
  constructor(id: string) {
    super(`the lease of job ${id} was lost`);
    this.name = 'LeaseLost';
  }
}

export const leasedBy = ({ id, token }: Claim) =>
  and(eq(jobs.id, id), eq(jobs.leaseToken, token), isNotEnded);

/** A job just claimed. `ranSeconds` ago, by the database's clock, it was claimed for the first time: 0 is just now. */
export type ClaimedRow = JobRow & { ranSeconds: number };

/**
 * Claims the job by compare-and-set, under the lease of this worker, which it renews. Returns undefined if the job has
 * ended, another worker has it, the entry is outdated, or its payload is of a version that is not understood here.
 * Its commit does not wait for the disk. An effect outside the database comes after a later commit under this claim that
 * does: that one puts the claim on the disk as well, or finds it lost in a crash of the database and changes nothing.
 */
export async function claimJob(
  db: Db,
  { id, epoch }: QueueEntry,
  {
    worker,
    token = newId(),
    understood = UNDERSTOOD,
  }: { worker: string; token?: string; understood?: Understood },
): Promise<ClaimedRow | undefined> {
  const given = { id, epoch, worker, token, understood: JSON.stringify(understood) };
  const [row] = await writeClaim(db).execute(given);
  return row;
}

const { placeholder } = sql;
const understood = sql`${placeholder('understood')}::jsonb`;
const given = (name: string) => sql`${placeholder(name)}`;

const writeClaim = prepareOnce(db => {
  const lease = renewedLease(db as Db);
  return db
    .with(lease)
    .update(jobs)
    .set({
      leaseToken: given('token'),
      leaseExpires: leaseEnd,
      worker: given('worker'),
      state: 'running',
      started: sql`coalesce(${jobs.started}, now())`,
      version: sql`${jobs.version} + 1`,
    })
    .where(
      and(
        eq(jobs.id, placeholder('id')),
        eq(jobs.epoch, placeholder('epoch')),
        isNotLeased,
        isUnderstood(understood),
        // The worker's lease is locked before the job, as in reclaiming.
        exists(db.select({ worker: lease.worker }).from(lease)),
        sql`set_config('synchronous_commit', 'off', true) = 'off'`,
      ),
    )
    .returning({
      ...getTableColumns(jobs),
      ranSeconds: sql<number>`extract(epoch from now() - ${jobs.started})::float8`,
    })
    .prepare('claim_job');
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

/** New values, or SQL expressions, of some columns. */
type Changes = Partial<{ [K in keyof JobRow]: unknown }>;

/** Writes to the held row in `tx`; throws LeaseLost, which rolls the transaction back, when it is not held. */
export async function updateLeased(tx: Tx, claim: Claim, set: Changes): Promise<void> {
  await updateLeasedQuietly(tx, claim, { ...set, version: sql`${jobs.version} + 1` });
}

/**
 * This commit waits for the disk, and for a synchronous standby where there is one, even if the role's setting is weaker: a
 * promise that precedes an effect outside must outlive the database's machine.
 */
const isDurable = sql`set_config('synchronous_commit', case current_setting('synchronous_commit')
  when 'remote_apply' then 'remote_apply' else 'on' end, true) <> ''`;

/** As updateLeased(), without a new version: for what no client sees. */
export async function updateLeasedQuietly(tx: Tx, claim: Claim, set: Changes): Promise<void> {
  const rows = await tx
    .update(jobs)
    .set(set as Partial<JobRow>)
    .where(and(leasedBy(claim), 'runAt' in set ? isDurable : undefined))
    .returning({ id: jobs.id });
  if (rows.length === 0) throw new LeaseLost(claim.id);
}

/** Gives the job up for any worker to claim after so many seconds. It does not count as a lost worker. */
export async function releaseJob(db: Db, claim: Claim, afterSeconds: number): Promise<void> {
  await db
    .update(jobs)
    .set({
      leaseToken: null,
      leaseExpires: null,
      dispatched: null,
      // Set without a delay, too: the job has waited since then.
      notBefore: sql`now() + make_interval(secs => ${afterSeconds})`,
      version: sql`${jobs.version} + 1`,
    })
    .where(leasedBy(claim));
}

export interface JobEnd {
  state: Extract<JobState, 'succeeded' | 'failed' | 'cancelled'>;
  result?: unknown;
  error?: ErrorRecord;
}

/**
 * Replaces what PostgreSQL's jsonb does not take: NUL and halves of surrogate pairs. Texts of errors come from files and hosts,
 * and a job whose end cannot be written would run again and again.
 */
function storable(error: ErrorRecord): ErrorRecord {
  const clean = (_key: string, value: unknown) =>
    typeof value === 'string' ? value.replace(/[\0\p{Surrogate}]/gu, '\ufffd') : value;
  return JSON.parse(JSON.stringify(error, clean)) as ErrorRecord;
}

/**
 * Ends the job; `promote` makes the attempt's work visible in the same transaction. Throws `cancelled`, and promotes nothing,
 * if a cancel was requested.
 */
export async function finishJob(
  db: Db,
  claim: Claim,
  ending: JobEnd,
  promote?: (tx: Tx) => Promise<void>,
): Promise<void> {
  const finish = async (tx: Tx, evenCancelled: boolean) => {
    const rows = await writeEnd(tx).execute({
      id: claim.id,
      token: claim.token,
      state: ending.state,
      result: ending.result ? JSON.stringify(ending.result) : null,
      error: ending.error ? JSON.stringify(storable(ending.error)) : null,
      evenCancelled,
    });
    return rows.length > 0;
  };
  if (!promote) {
    if (await finish(db, true)) return;
    throw new LeaseLost(claim.id);
  }
  await db.transaction(async tx => {
    await throwIfNotLeased(tx, claim);
    // Locks what the job works for before the job's row, as a deletion of that does, to avoid deadlocks.
    await promote(tx);
    // Checked after the promotion has its locks: a client whose cancel was accepted may have changed the same rows since.
    if (await finish(tx, false)) return;
    await throwIfNotLeased(tx, claim);
    throw new WindlassError('cancelled');
  });
}

async function throwIfNotLeased(tx: Tx, claim: Claim): Promise<void> {
  if (!(await rowExists(tx, jobs, leasedBy(claim)))) throw new LeaseLost(claim.id);
}

const writeEnd = prepareOnce(tx =>
  tx
    .update(jobs)
    .set({
      state: sql`${placeholder('state')}::text`,
      result: sql`${placeholder('result')}::jsonb`,
      error: sql`${placeholder('error')}::jsonb`,
      progress: sql`case when ${placeholder('state')}::text = 'succeeded' then 1 else ${jobs.progress} end`,
      finished: sql`now()`,
      leaseToken: null,
      leaseExpires: null,
      version: sql`${jobs.version} + 1`,
    })
    .where(
      and(
        eq(jobs.id, placeholder('id')),
        eq(jobs.leaseToken, placeholder('token')),
        isNotEnded,
        sql`(${jobs.cancelRequested} is null or ${placeholder('evenCancelled')}::boolean)`,
      ),
    )
    .returning({ id: jobs.id })
    .prepare('end_job'),
);
