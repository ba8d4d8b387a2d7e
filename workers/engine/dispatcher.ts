import { and, eq, inArray, isNotNull, isNull, sql } from 'drizzle-orm';
import { type Db, isDatabaseDown, openDatabase, sqlState } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { QUEUES, type QueueName } from '../../shared/jobs/catalog.ts';
import {
  ENTRIES_PER_SLOT,
  LEASE_SECONDS,
  LOSS_BACKOFF_SECONDS,
  MAX_CONSECUTIVE_LOSSES,
  RENEW_MS,
  UNCLAIMED_SECONDS,
} from '../../shared/jobs/lease.ts';
import { type QueueEntry, toQueueEntry } from '../../shared/jobs/queue.ts';
import { queueCapacity } from '../../shared/jobs/queue-capacity.ts';
import type { WorkerContext } from '../context.ts';
import { AutoResetEvent } from './auto-reset-event.ts';

/** Any number will do, as long as every upkeep worker uses the same one. */
const LOCK = 7_493_222;
const TICK_MS = 1_000;
/** A tick that was asked for, because jobs ended while more wait, comes this soon. */
const EARLY_TICK_MS = 50;
/**
 * Who has just become the dispatcher takes no lease away for so long: after an outage of the database every worker
 * first gets the chance to renew.
 */
const PATIENCE_MS = 2 * RENEW_MS;

/**
 * Moves rows that wait to the queues, a few at a time and in turn between users, and takes back what dead workers held.
 * One dispatcher at a time: each tick asks for an advisory lock on a connection that does nothing else. The lock lasts
 * as long as the connection, and whoever holds it gets it again; when it breaks another upkeep worker takes over.
 */
export async function runDispatcher(context: WorkerContext): Promise<void> {
  const { stopping, log } = context;
  const database = openDatabase(context.config.DATABASE_URL ?? '', {
    max: 1,
    // A dispatcher that hangs, or whose machine vanished, loses its connection and so the lock.
    idleSessionMs: 10 * TICK_MS,
  });
  const alarm = new Alarm(context);
  let since: number | undefined;
  while (!stopping.aborted) {
    try {
      const [lock] = await database.db.execute<{ mine: boolean }>(
        sql`select pg_try_advisory_lock(${LOCK}) as mine`,
      );
      if (!lock?.mine) since = undefined;
      else {
        since ??= performance.now();
        alarm.wanted = await dispatch(context, database.db, since);
      }
    } catch (error) {
      since = undefined;
      log.warn({ err: error }, 'the dispatcher was interrupted');
    }
    await alarm.wait(stopping);
  }
  alarm.close();
  await database.close();
}

/** One round; true when more waits than the queues have room for. A step that fails does not keep the others from theirs. */
async function dispatch(context: WorkerContext, db: Db, since: number): Promise<boolean> {
  const attempt = (step: Promise<unknown>) =>
    step.catch((error: unknown) => {
      if (isDatabaseDown(error) && sqlState(error) !== '57014') throw error;
      context.log.warn({ err: error }, 'a step of the dispatcher failed');
      return false;
    });
  if (performance.now() - since > PATIENCE_MS) {
    await attempt(endStuckTransactions(db));
    await attempt(takeBackExpired(context, db));
  }
  let backlog = false;
  for (const queue of QUEUES) {
    await attempt(redispatchUnclaimed(context, db, queue));
    if (await attempt(dispatchWaiting(context, db, queue))) backlog = true;
  }
  return backlog;
}

/** Ends the pause between two rounds early when a job changed, where that is wanted: it may have made room in a queue. */
class Alarm {
  wanted = false;
  #pause = new AutoResetEvent();
  readonly #unsubscribe: () => void;

  constructor({ notifications }: WorkerContext) {
    this.#unsubscribe = notifications.on('job', () => {
      const pause = this.#pause;
      if (this.wanted) setTimeout(() => pause.set(), EARLY_TICK_MS).unref();
    });
  }

  async wait(stopping: AbortSignal): Promise<void> {
    this.#pause = new AutoResetEvent();
    await this.#pause.wait(stopping, TICK_MS);
  }

  close(): void {
    this.#unsubscribe();
  }
}

/**
 * A worker that stands still between a statement's parts, in a transaction, keeps its job's row locked for as long as its
 * connection lives: the server waits for it, and counts that as work, which none of its own time-outs ends.
 */
async function endStuckTransactions(db: Db): Promise<void> {
  await db.execute(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
      and application_name like 'windlass-%' and wait_event = 'ClientRead'
      and xact_start < now() - ${`${LEASE_SECONDS} seconds`}::interval`);
}

/** Leases that ran out: the job waits a little longer after each worker lost, and fails after 20 in a row. */
async function takeBackExpired(
  context: Pick<WorkerContext, 'notifications' | 'log' | 'metrics'>,
  db: Db,
): Promise<void> {
  const waits = sql.raw(`(array[${LOSS_BACKOFF_SECONDS.join(',')}])`);
  const last = LOSS_BACKOFF_SECONDS.length;
  const lost = JSON.stringify({
    code: 'worker_lost',
    detail: `Workers were lost: ${MAX_CONSECUTIVE_LOSSES} in a row ended while they did this, without any progress.`,
    hint: 'What is asked for may exhaust a worker. See the log of the workers.',
  });
  const gone = sql`(${jobs.consecutiveLosses} + 1 >= ${MAX_CONSECUTIVE_LOSSES})`;
  // A worker that is about to write to its row has it locked: it is alive enough to be asked again.
  const expired = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(
      and(isNotNull(jobs.leaseToken), isNull(jobs.finished), sql`${jobs.leaseExpires} < now()`),
    )
    .for('update', { skipLocked: true });
  const rows = await db
    .update(jobs)
    .set({
      leaseToken: null,
      leaseExpires: null,
      dispatched: null,
      consecutiveLosses: sql`${jobs.consecutiveLosses} + 1`,
      notBefore: sql`now() + make_interval(secs => ${waits}[least(${jobs.consecutiveLosses} + 1, ${last})])`,
      version: sql`${jobs.version} + 1`,
      state: sql`case when ${gone} then 'failed' else ${jobs.state} end`,
      finished: sql`case when ${gone} then now() end`,
      error: sql`case when ${gone} then ${lost}::jsonb end`,
    })
    .where(inArray(jobs.id, expired))
    .returning({ id: jobs.id, worker: jobs.worker, requestId: jobs.requestId });
  context.metrics.leasesExpired(rows.length);
  for (const { id, ...row } of rows) {
    context.log.warn({ job: id, ...row }, 'a worker was lost; its job is taken up again');
    context.notifications.publish('job', id);
  }
}

/** Fills the queue up to its room; true when more waits than there was room for. */
async function dispatchWaiting(context: WorkerContext, db: Db, queue: QueueName): Promise<boolean> {
  const due = sql`${jobs.queue} = ${queue} and finished is null and lease_token is null and dispatched is null and (not_before is null or not_before <= now())`;
  const [look] = await db.execute<{ room: string; waiting: boolean }>(
    sql`select ${sql.raw(queueCapacity(queue))} as room, exists (select 1 from ${jobs} where ${due}) as waiting`,
  );
  const room = Number(look?.room ?? 0);
  if (!look?.waiting || room <= 0) return look?.waiting === true;
  const picked = sql`(select id from (select id, row_number() over (partition by owner order by id) as turn from ${jobs} where ${due}) waiting order by turn, id limit ${room})`;
  // What somebody holds, to cancel it, is left out: whoever waits for none cannot be waited for in a circle.
  const free = sql`(select id from ${jobs} where id in ${picked} for update skip locked)`;
  const entries = await db
    .update(jobs)
    .set({ epoch: sql`${jobs.epoch} + 1`, dispatched: sql`now()` })
    .where(
      and(
        sql`${jobs.id} in ${free}`,
        isNull(jobs.leaseToken),
        isNull(jobs.dispatched),
        isNull(jobs.finished),
      ),
    )
    .returning({ id: jobs.id, epoch: jobs.epoch, kind: jobs.kind, session: jobs.session });
  await addEntries(context, queue, entries.map(toQueueEntry));
  return entries.length >= room;
}

/** What was sent and not taken: gone or ended in the queue, it is sent again under the next epoch; else it just waits. */
async function redispatchUnclaimed(
  context: WorkerContext,
  db: Db,
  queue: QueueName,
): Promise<void> {
  const late = and(
    eq(jobs.queue, queue),
    isNull(jobs.finished),
    isNull(jobs.leaseToken),
    sql`${jobs.dispatched} < now() - ${`${UNCLAIMED_SECONDS} seconds`}::interval`,
  );
  const unclaimed = await db
    .select({ id: jobs.id, epoch: jobs.epoch })
    .from(jobs)
    .where(late)
    .limit(64 * ENTRIES_PER_SLOT);
  if (unclaimed.length === 0) return;
  const missing = await context.queues.missing(queue, unclaimed).catch(() => [] as QueueEntry[]);
  const still = unclaimed.filter(entry => !missing.includes(entry)).map(entry => entry.id);
  // Looked up and found: the next look is due in another 15 s.
  if (still.length > 0)
    await db
      .update(jobs)
      .set({ dispatched: sql`now()` })
      .where(and(late, inArray(jobs.id, still)));
  if (missing.length === 0) return;
  await db
    .update(jobs)
    .set({ dispatched: null })
    .where(
      and(
        late,
        inArray(
          jobs.id,
          missing.map(entry => entry.id),
        ),
      ),
    );
  context.log.info({ queue, count: missing.length }, 'the queue lost entries; they are sent again');
}

async function addEntries(
  context: WorkerContext,
  queue: QueueName,
  entries: QueueEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  await context.queues.add(queue, entries).catch((error: unknown) => {
    context.log.warn(
      { err: error, queue, count: entries.length },
      'the queue does not take entries; they are sent again later',
    );
  });
}
