import { and, eq, type SQL, sql } from 'drizzle-orm';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { anyOf, isHeld, isWaiting } from '../../shared/jobs/job-conditions.ts';
import { UNCLAIMED_SECONDS } from '../../shared/jobs/lease.ts';
import { type QueueEntry, toQueueEntry } from '../../shared/jobs/queue.ts';
import { queueCapacity } from '../../shared/jobs/queue-capacity.ts';
import { readUnderstood } from '../../shared/jobs/understood.ts';
import type { WorkerContext } from '../context.ts';
import { pickNext } from './pick-next.ts';

type Context = Pick<WorkerContext, 'database' | 'queues' | 'log'>;

/** Looked at in one round. */
const MAX_UNCLAIMED = 256;

/** Fills the queue up to its capacity; true when more jobs may wait than it had room for. */
export async function dispatchWaiting(context: Context, queue: QueueName): Promise<boolean> {
  const { db } = context.database;
  const [found] = await db.execute<{ room: string }>(
    sql`select ${sql.raw(queueCapacity(queue))} as room`,
  );
  const room = Number(found?.room ?? 0);
  if (room <= 0) return true;
  const picked = await db.execute<{ id: string }>(pickNext(queue, room, await readUnderstood(db)));
  if (picked.length === 0) return false;
  const ids = anyOf(picked.map(row => row.id));
  // Rows that are locked, to be cancelled, are skipped to avoid deadlocks.
  const free = sql`select id from ${jobs} where ${jobs.id} = ${ids} for update skip locked`;
  const entries = await db
    .update(jobs)
    .set({ epoch: sql`${jobs.epoch} + 1`, dispatched: sql`now()` })
    .where(and(sql`${jobs.id} = any(array(${free}))`, isWaiting))
    .returning({ id: jobs.id, epoch: jobs.epoch, kind: jobs.kind, session: jobs.session });
  const { length: count } = entries;
  if (count > 0)
    await context.queues.add(queue, entries.map(toQueueEntry)).catch((err: unknown) => {
      const why = 'the queue is unavailable; its entries are dispatched again later';
      context.log.warn({ err, queue, count }, why);
    });
  return picked.length >= room;
}

/** Looks up jobs that were dispatched and not claimed: those that the queue has lost are dispatched again, as the next epoch. */
export async function redispatchUnclaimed(context: Context, queue: QueueName): Promise<void> {
  const { db } = context.database;
  const isOverdue = and(
    eq(jobs.queue, queue),
    isHeld,
    sql`lease_token is null`,
    sql`${jobs.dispatched} < now() - ${`${UNCLAIMED_SECONDS} seconds`}::interval`,
  );
  const setDispatched = async (entries: { id: string }[], dispatched: SQL | null) => {
    const ids = anyOf(entries.map(entry => entry.id));
    if (entries.length > 0)
      await db
        .update(jobs)
        .set({ dispatched })
        .where(and(sql`${jobs.id} = ${ids}`, isOverdue));
  };
  const unclaimed = await db
    .select({ id: jobs.id, epoch: jobs.epoch })
    .from(jobs)
    .where(isOverdue)
    .limit(MAX_UNCLAIMED);
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
