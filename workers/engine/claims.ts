import { and, eq, exists, getTableColumns, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { channelOf } from '../../shared/database/notifications.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { type JobRow, type JobState, jobs } from '../../shared/database/schema.ts';
import { type ErrorRecord, WindlassError } from '../../shared/errors/errors.ts';
import { KINDS_WITH_OWN_STATE } from '../../shared/jobs/catalog.ts';
import { isNotEnded, isNotLeased } from '../../shared/jobs/job-conditions.ts';
import { isUnderstood, UNDERSTOOD, type Understood } from '../../shared/jobs/payload-versions.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { type Claim, LeaseLost, leasedBy } from './fencing-token.ts';
import { leaseEnd, renewedLease } from './leases.ts';

/** A job just claimed. `ranSeconds` ago, by the database's clock, it was claimed for the first time: 0 is just now. */
export type ClaimedRow = JobRow & { ranSeconds: number };

interface Claimant {
  worker: string;
  understood?: Understood;
}

/**
 * Claims the jobs by compare-and-set and renews this worker's lease. Returns, for each entry, undefined if the job has
 * ended or is claimed, or the entry is outdated or not understood.
 *
 * The commit does not wait for the disk: an effect outside the database needs a later durable commit under this claim
 * first (decision 21). A locked job fails after a second, because the worker's lease is locked meanwhile.
 */
export async function claimJobs(
  db: Db,
  entries: (QueueEntry & { token: string })[],
  { worker, understood = UNDERSTOOD }: Claimant,
): Promise<(ClaimedRow | undefined)[]> {
  // An entry that came twice: the second finds the job claimed.
  const once = new Map(entries.toReversed().map(entry => [entry.id, entry]));
  const values = { worker, understood: JSON.stringify(understood) };
  const rows = await writeClaims(db).execute({ ...group([...once.values()], '1s'), ...values });
  const claimed = new Map(rows.map(row => [row.leaseToken, row]));
  return entries.map(({ token }) => claimed.get(token));
}

const { placeholder } = sql;
const understood = sql`${placeholder('understood')}::jsonb`;

/**
 * A statement's arguments for several jobs: their ids, and the rest by id. A single job waits `lockTimeout` for its
 * row's lock.
 */
const group = (items: { id: string }[], lockTimeout = '0') => ({
  ids: `{${items.map(({ id }) => id).join(',')}}`,
  given: JSON.stringify(Object.fromEntries(items.map(item => [item.id, item]))),
  lockTimeout: items.length > 1 ? GROUP_LOCK_TIMEOUT : lockTimeout,
});
const ids = sql`any(${placeholder('ids')}::text[])`;
/** A row that is locked for longer makes the jobs of its group be written one by one. */
const GROUP_LOCK_TIMEOUT = '200ms';
const setsLockTimeout = sql`set_config('lock_timeout', ${placeholder('lockTimeout')}, true) <> ''`;
const withGiven = (db: Db) =>
  db
    .$with('given', { value: sql<unknown>`value`.as('value') })
    .as(sql`select ${placeholder('given')}::jsonb as value`);
/** What is given of the row's job. */
const given = sql`((select value from given) -> ${jobs.id})`;
const text = (name: string) => sql`${given} ->> ${sql.raw(`'${name}'`)}`;

/** Kinds whose handlers set the state of their jobs. */
const hasOwnState = sql.raw(
  `kind in (${KINDS_WITH_OWN_STATE.map(kind => `'${kind}'`).join(', ')})`,
);

const writeClaims = prepareOnce(tx => {
  const db = tx as Db;
  const lease = renewedLease(db, sql`select from jobs where id = ${ids} and ${isNotLeased}`);
  return db
    .with(withGiven(db), lease)
    .update(jobs)
    .set({
      leaseToken: text('token'),
      leaseExpires: leaseEnd,
      worker: sql`${placeholder('worker')}`,
      state: sql`case when ${hasOwnState} then ${jobs.state} else 'running' end`,
      started: sql`case when ${hasOwnState} then ${jobs.started} else coalesce(${jobs.started}, now()) end`,
      version: sql`${jobs.version} + 1`,
    })
    .where(
      and(
        sql`${jobs.id} = ${ids}`,
        sql`${jobs.epoch} = (${text('epoch')})::int`,
        isNotLeased,
        isUnderstood(understood),
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

/** Requeues, a second later, a job whose payload version this worker does not understand: a newer worker may get it. */
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
 * This commit waits for the disk, and for a synchronous standby if there is one, even if the role's setting is weaker:
 * the record of an intent must survive a crash of the database.
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
      leaseExpires: null,
      dispatched: null,
      // Set without a delay, too: the job has waited since then.
      // What was cancelled meanwhile is due at once.
      notBefore: sql`now() + make_interval(secs => case when ${jobs.cancelRequested} is null then ${delay} else least(${delay}, 5) end)`,
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
 * Replaces what jsonb rejects: NUL and unpaired surrogates. Error texts come from files and hosts, and a job whose end
 * cannot be written would run again and again.
 */
function storable(error: ErrorRecord): ErrorRecord {
  const clean = (_key: string, value: unknown) =>
    typeof value === 'string' ? value.replace(/[\0\p{Surrogate}]/gu, '\ufffd') : value;
  return JSON.parse(JSON.stringify(error, clean)) as ErrorRecord;
}

/** An end that is to be written. */
export interface Ended {
  claim: Claim;
  ending: JobEnd;
}

interface EndOptions {
  /** Ends nothing of which a cancel was requested. */
  onlyWanted?: boolean;
  /** The commit notifies of the ends, and of the slots that are free. */
  notifies?: boolean;
}

/** Ends jobs; tells of each whether it was held. */
export async function endJobs(
  tx: Tx,
  ends: Ended[],
  { onlyWanted = false, notifies = false }: EndOptions = {},
): Promise<boolean[]> {
  const items = ends.map(({ claim, ending: { state, result, error } }) => ({
    ...{ ...claim, state, result: result ?? undefined },
    error: error && storable(error),
    evenCancelled: !onlyWanted,
  }));
  const rows = await writeEnds(tx).execute({ ...group(items), notifies });
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
  promote?: (tx: Tx) => Promise<void>,
): Promise<void> {
  const finish = async (tx: Tx, onlyWanted: boolean) => {
    const [hasEnded] = await endJobs(tx, [{ claim, ending }], { onlyWanted });
    return hasEnded;
  };
  if (!promote) {
    if (await finish(db, false)) return;
    throw new LeaseLost(claim.id);
  }
  await db.transaction(async tx => {
    await throwIfNotLeased(tx, claim);
    // Locks what the job works for before the job's row, as a deletion of that does, to avoid deadlocks.
    await promote(tx);
    // Checked after the promotion has its locks: a client whose cancel was accepted may have changed the same rows since.
    if (await finish(tx, ending.state === 'succeeded')) return;
    await throwIfNotLeased(tx, claim);
    throw new WindlassError('cancelled');
  });
}

async function throwIfNotLeased(tx: Tx, claim: Claim): Promise<void> {
  if (!(await rowExists(tx, jobs, leasedBy(claim)))) throw new LeaseLost(claim.id);
}

const writeEnds = prepareOnce(tx =>
  (tx as Db)
    .with(withGiven(tx as Db))
    .update(jobs)
    .set({
      state: text('state'),
      result: sql`${given} -> 'result'`,
      error: sql`${given} -> 'error'`,
      progress: sql`case when ${text('state')} = 'succeeded' then 1 else ${jobs.progress} end`,
      finished: sql`now()`,
      leaseToken: null,
      leaseExpires: null,
      version: sql`${jobs.version} + 1`,
    })
    .where(
      and(
        sql`${jobs.id} = ${ids}`,
        sql`${jobs.leaseToken} = ${text('token')}`,
        isNotEnded,
        sql`(${jobs.cancelRequested} is null or (${text('evenCancelled')})::boolean)`,
        setsLockTimeout,
      ),
    )
    .returning({
      id: jobs.id,
      told: sql`case when ${placeholder('notifies')}::boolean then num_nonnulls(
        pg_notify(${sql.raw(`'${channelOf('job')}'`)}, ${jobs.id}),
        pg_notify(${sql.raw(`'${channelOf('freed')}'`)}, ${jobs.queue})) end`,
    })
    .prepare('end_jobs'),
);
