import { and, eq, inArray, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
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

/** Any number, the same in every upkeep worker. */
const ADVISORY_LOCK = 7_493_222;
const TICK_MS = 1_000;
/** After a job ended while more wait, the next tick comes this soon. */
const EARLY_TICK_MS = 50;
/** A new dispatcher reclaims no lease for so long: after an outage of the database every worker can renew first. */
const RECLAIM_AFTER_MS = 2 * RENEW_MS;

/**
 * Moves waiting jobs to the queues, a few at a time and round-robin between users, and reclaims expired leases. One dispatcher
 * at a time: each tick asks for an advisory lock over a connection that serves nothing else. The lock lasts as long as the
 * connection; when that breaks another upkeep worker gets the lock.
 */
export async function runDispatcher(context: WorkerContext): Promise<void> {
  const { stopping, log } = context;
  const database = openDatabase(context.config.DATABASE_URL ?? '', {
    max: 1,
    // A dispatcher that hangs, or whose machine is gone, loses its connection and so the lock.
    idleSessionMs: 10 * TICK_MS,
  });
  let hasBacklog = false;
  let pause = new AutoResetEvent();
  // With a backlog the pause between two rounds ends early when a job changed: its queue may have room.
  const unsubscribe = context.notifications.on('job', () => {
    const current = pause;
    if (hasBacklog) setTimeout(() => current.set(), EARLY_TICK_MS).unref();
  });
  let since: number | undefined;
  while (!stopping.aborted) {
    try {
      const [lock] = await database.db.execute<{ mine: boolean }>(
        sql`select pg_try_advisory_lock(${ADVISORY_LOCK}) as mine`,
      );
      if (!lock?.mine) since = undefined;
      else {
        since ??= performance.now();
        hasBacklog = await dispatch(context, database.db, since);
      }
    } catch (error) {
      since = undefined;
      log.warn({ err: error }, 'a round of the dispatcher failed');
    }
    pause = new AutoResetEvent();
    await pause.wait(stopping, TICK_MS);
  }
  unsubscribe();
  await database.close();
}

/** One round; true when more jobs wait than the queues have room for. A step that fails does not keep the others from running. */
async function dispatch(context: WorkerContext, db: Db, since: number): Promise<boolean> {
  const attempt = (step: Promise<unknown>) =>
    step.catch((error: unknown) => {
      if (isDatabaseDown(error) && sqlState(error) !== '57014') throw error;
      context.log.warn({ err: error }, 'a step of the dispatcher failed');
      return false;
    });
  if (performance.now() - since > RECLAIM_AFTER_MS) {
    await attempt(endStuckTransactions(db));
    await attempt(reclaimExpiredLeases(context, db));
  }
  let backlog = false;
  for (const queue of QUEUES) {
    await attempt(redispatchUnclaimed(context, db, queue));
    if (await attempt(dispatchWaiting(context, db, queue))) backlog = true;
  }
  return backlog;
}

/**
 * A worker that is stopped while it sends a statement, in a transaction, keeps its job's row locked for as long as its
 * connection lives: the server counts the wait as an active statement, which none of its time-outs ends.
 */
async function endStuckTransactions(db: Db): Promise<void> {
  await db.execute(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
      and application_name like 'windlass-%' and wait_event = 'ClientRead'
      and xact_start < now() - ${`${LEASE_SECONDS} seconds`}::interval`);
}

/** Makes jobs with expired leases wait again, longer after each loss, and fails them after 20 losses in a row. */
async function reclaimExpiredLeases(
  context: Pick<WorkerContext, 'notifications' | 'log' | 'metrics'>,
  db: Db,
): Promise<void> {
  const backoff = sql.raw(`(array[${LOSS_BACKOFF_SECONDS.join(',')}])`);
  const longest = LOSS_BACKOFF_SECONDS.length;
  const workerLost = JSON.stringify({
    code: 'worker_lost',
    detail: `Workers were lost: ${MAX_CONSECUTIVE_LOSSES} in a row ended while they ran this job, without any progress.`,
    hint: 'The job may exhaust a worker. See the log of the workers.',
  });
  const isLast = sql`(${jobs.consecutiveLosses} + 1 >= ${MAX_CONSECUTIVE_LOSSES})`;
  // A worker that has its row locked is about to write to it: it is checked again in the next round.
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
      notBefore: sql`now() + make_interval(secs => ${backoff}[least(${jobs.consecutiveLosses} + 1, ${longest})])`,
      version: sql`${jobs.version} + 1`,
      state: sql`case when ${isLast} then 'failed' else ${jobs.state} end`,
      finished: sql`case when ${isLast} then now() end`,
      error: sql`case when ${isLast} then ${workerLost}::jsonb end`,
    })
    .where(inArray(jobs.id, expired))
    .returning({ id: jobs.id, worker: jobs.worker, requestId: jobs.requestId });
  context.metrics.leasesExpired(rows.length);
  for (const { id, ...row } of rows) {
    context.log.warn({ job: id, ...row }, 'a worker was lost; its job waits for another');
    context.notifications.publish('job', id);
  }
}

/** Fills the queue up to its capacity; true when more jobs wait than it had room for. */
async function dispatchWaiting(context: WorkerContext, db: Db, queue: QueueName): Promise<boolean> {
  const due = sql`${jobs.queue} = ${queue} and finished is null and lease_token is null and dispatched is null and (not_before is null or not_before <= now())`;
  const [found] = await db.execute<{ room: string; waiting: boolean }>(
    sql`select ${sql.raw(queueCapacity(queue))} as room, exists (select 1 from ${jobs} where ${due}) as waiting`,
  );
  const room = Number(found?.room ?? 0);
  if (!found?.waiting || room <= 0) return found?.waiting === true;
  // Rows that are locked, to be cancelled, are skipped to avoid deadlocks.
  const free = sql`(select id from ${jobs} where id in ${pickNext(due, room)} for update skip locked)`;
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
  const { length: count } = entries;
  if (count > 0)
    await context.queues.add(queue, entries.map(toQueueEntry)).catch((err: unknown) => {
      const why = 'the queue is unavailable; its entries are dispatched again later';
      context.log.warn({ err, queue, count }, why);
    });
  return count >= room;
}

/** Who is next, round-robin between users: the oldest due job of each, then the second of each, and so on. */
const pickNext = (due: SQL, room: number): SQL =>
  sql`(select id from (select id, row_number() over (partition by owner order by id) as turn from ${jobs} where ${due}) waiting order by turn, id limit ${room})`;

/** Looks up jobs that were dispatched and not claimed: those that the queue has lost are dispatched again, as the next epoch. */
async function redispatchUnclaimed(
  context: WorkerContext,
  db: Db,
  queue: QueueName,
): Promise<void> {
  const isOverdue = and(
    eq(jobs.queue, queue),
    isNull(jobs.finished),
    isNull(jobs.leaseToken),
    sql`${jobs.dispatched} < now() - ${`${UNCLAIMED_SECONDS} seconds`}::interval`,
  );
  const setDispatched = async (entries: { id: string }[], dispatched: SQL | null) => {
    const ids = entries.map(entry => entry.id);
    if (ids.length > 0)
      await db
        .update(jobs)
        .set({ dispatched })
        .where(and(isOverdue, inArray(jobs.id, ids)));
  };
  const unclaimed = await db
    .select({ id: jobs.id, epoch: jobs.epoch })
    .from(jobs)
    .where(isOverdue)
    .limit(64 * ENTRIES_PER_SLOT);
  if (unclaimed.length === 0) return;
  const missing = await context.queues.missing(queue, unclaimed).catch(() => [] as QueueEntry[]);
  const found = unclaimed.filter(entry => !missing.includes(entry));
  // Those in the queue are looked up again in another 15 s.
  await setDispatched(found, sql`now()`);
  await setDispatched(missing, null);
  const { length: count } = missing;
  if (count > 0)
    context.log.info({ queue, count }, 'the queue lost entries; they are dispatched again');
}
