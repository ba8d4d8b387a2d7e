import { and, eq, type SQL, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { hasSlot } from '../../shared/jobs/job-conditions.ts';
import { UNCLAIMED_SECONDS } from '../../shared/jobs/lease.ts';
import type { WorkerContext } from '../context.ts';

/** Looked at in one round. */
const MAX_UNCLAIMED = 256;

/**
 * Dispatches jobs again, under the next epoch, that were dispatched, not claimed, and lost by the queue. Throws while the
 * queue is unreachable: what it has lost is not known then.
 */
export async function redispatchUnclaimed(
  context: Pick<WorkerContext, 'database' | 'queues' | 'log'>,
  queue: QueueName,
): Promise<void> {
  const { db } = context.database;
  const isOverdue = and(
    eq(jobs.queue, queue),
    hasSlot,
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
  const missing = await context.queues.missing(queue, unclaimed);
  const found = unclaimed.filter(entry => !missing.includes(entry));
  // Those in the queue are looked up again in another 15 s.
  await setDispatched(found, sql`now()`);
  await setDispatched(missing, null);
  const { length: count } = missing;
  if (count > 0)
    context.log.info({ queue, count }, 'the queue lost entries; they are dispatched again');
}
