import { and, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { channelOf } from '../../shared/database/notifications.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { jobs } from '../../shared/database/schema.ts';
import { type ErrorRecord, WindlassError } from '../../shared/errors/errors.ts';
import { isOpenById } from '../../shared/jobs/job-conditions.ts';
import type { JobState } from '../../shared/jobs/job-states.ts';
import { type Claim, LeaseRevoked, leasedBy } from './claim.ts';
import {
  anyId,
  argumentsOf,
  given,
  givenText,
  setsLockTimeout,
  withGiven,
} from './group-statement.ts';

export interface JobEnd {
  state: Extract<JobState, 'succeeded' | 'failed' | 'cancelled'>;
  result?: unknown;
  error?: ErrorRecord;
}

/**
 * Replaces what jsonb rejects: NUL and unpaired surrogates. Error texts come from files and hosts, and a job whose end
 * cannot be written would run again and again.
 */
function storable(error: ErrorRecord): ErrorRecord {
  const clean = (_key: string, value: unknown) =>
    typeof value === 'string' ? value.replace(/[\0\p{Surrogate}]/gu, '\ufffd') : value;
  return JSON.parse(JSON.stringify(error, clean)) as ErrorRecord;
}

/** An end that is to be written. */
export interface PendingEnd {
  claim: Claim;
  ending: JobEnd;
}

interface EndOptions {
  /** Ends nothing of which a cancel was requested. */
  onlyWanted?: boolean;
  /** The commit notifies of the ends, and of the slots that are free. */
  notifies?: boolean;
}

/** Ends different jobs; tells of each whether it was held. */
export async function endJobs(
  tx: Tx,
  ends: PendingEnd[],
  { onlyWanted = false, notifies = false }: EndOptions = {},
): Promise<boolean[]> {
  const items = ends.map(({ claim, ending: { state, result, error } }) => ({
    ...claim,
    state,
    result: result ?? undefined,
    error: error && storable(error),
    evenCancelled: !onlyWanted,
  }));
  const rows = await writeEnds(tx).execute({ ...argumentsOf(items), notifies });
  const ended = new Set(rows.map(({ id }) => id));
  return ends.map(({ claim }) => ended.has(claim.id));
}

/**
 * Ends the job; `promote` makes the attempt's work visible in the same transaction. Throws `cancelled`, and promotes nothing,
 * if a cancel was requested of a job that would succeed.
 */
export async function finishJob(
  db: Db,
  claim: Claim,
  ending: JobEnd,
  promote: (tx: Tx) => Promise<void> | Promise<object>,
): Promise<JobEnd> {
  const onlyWanted = ending.state === 'succeeded';
  return db.transaction(async tx => {
    await throwIfNotLeased(tx, claim);
    // Locks what the job works for before the job's row, as a deletion of that does, to avoid deadlocks.
    const added = await promote(tx);
    const whole = added ? { ...ending, result: Object.assign({}, ending.result, added) } : ending;
    // Checked after the promotion has its locks: a client whose cancel was accepted may have changed the same rows since.
    const [hasEnded] = await endJobs(tx, [{ claim, ending: whole }], { onlyWanted });
    if (hasEnded) return whole;
    await throwIfNotLeased(tx, claim);
    throw new WindlassError('cancelled');
  });
}

async function throwIfNotLeased(tx: Tx, claim: Claim): Promise<void> {
  if (!(await rowExists(tx, jobs, leasedBy(claim)))) throw new LeaseRevoked(claim.id);
}

const writeEnds = prepareOnce(tx =>
  tx
    .with(withGiven(tx))
    .update(jobs)
    .set({
      state: givenText('state'),
      result: sql`${given} -> 'result'`,
      error: sql`${given} -> 'error'`,
      progress: sql`case when ${givenText('state')} = 'succeeded' then 1 else ${jobs.progress} end`,
      finished: sql`now()`,
      leaseToken: null,
      version: sql`${jobs.version} + 1`,
    })
    .where(
      and(
        sql`${jobs.id} = ${anyId}`,
        sql`${jobs.leaseToken} = ${givenText('token')}`,
        isOpenById,
        sql`(${jobs.cancelRequested} is null or (${givenText('evenCancelled')})::boolean)`,
        setsLockTimeout,
      ),
    )
    .returning({
      id: jobs.id,
      told: sql`case when ${sql.placeholder('notifies')}::boolean then num_nonnulls(
        pg_notify(${sql.raw(`'${channelOf('job')}'`)}, ${jobs.id}),
        pg_notify(${sql.raw(`'${channelOf('freed')}'`)}, ${jobs.queue})) end`,
    })
    .prepare('end_jobs'),
);
