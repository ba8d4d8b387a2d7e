import { sql } from 'drizzle-orm';
import { openDatabase } from '../../shared/database/connect.ts';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import type { WorkerContext } from '../context.ts';
import { AutoResetEvent } from './auto-reset-event.ts';
import { dispatchWaiting, redispatchUnclaimed } from './dispatch-waiting.ts';
import { DispatcherStep as Step } from './dispatcher-step.ts';
import { endStuckTransactions, reclaimExpiredLeases } from './expired-leases.ts';
import { warnOfNotUnderstood } from './not-understood.ts';

/** Any number, the same in every upkeep worker. */
const ADVISORY_LOCK = 7_493_222;
const TICK_MS = 1_000;
/** After a job ended while more wait, the next tick comes this soon. */
const EARLY_TICK_MS = 50;
/**
 * No lease is reclaimed for so long after a dispatcher began or the database's clock was set: every worker can renew first,
 * after an outage of the database too.
 */
const RECLAIM_AFTER_MS = 2 * RENEW_MS;
/** The database's clock was set where it differs by more from what has passed here between two rounds. */
const CLOCK_TOLERANCE_MS = 2_000;

/**
 * Moves waiting jobs to the queues, a few at a time and round-robin between users, and reclaims expired leases. One dispatcher
 * at a time: each tick asks for an advisory lock over a connection that serves nothing else. The lock lasts as long as the
 * connection; when that breaks another upkeep worker gets the lock.
 */
export async function runDispatcher(context: WorkerContext): Promise<void> {
  const { stopping, log } = context;
  const lock = openDatabase(context.config.DATABASE_URL ?? '', {
    max: 1,
    // A dispatcher that hangs, or whose machine is gone, loses its connection and so the lock.
    idleSessionMs: 10 * TICK_MS,
  });
  /** The database's clock at the beginning of this round. */
  let now = '';
  const leases = [
    new Step('stuck transactions', log, () => endStuckTransactions(context)),
    new Step('expired leases', log, () => reclaimExpiredLeases(context, now)),
  ];
  const unclaimed = QUEUES.map(
    queue => new Step(`unclaimed, ${queue}`, log, () => redispatchUnclaimed(context, queue)),
  );
  const waiting = QUEUES.map(
    queue => new Step(`waiting, ${queue}`, log, () => dispatchWaiting(context, queue)),
  );
  const others = new Step('not understood', log, warnOfNotUnderstood(context));
  const steps = [...leases, ...unclaimed, ...waiting, others];
  let pause = new AutoResetEvent();
  // With a backlog the pause between two rounds ends early when a job changed: its queue may have room.
  const unsubscribe = context.notifications.on('job', () => {
    const current = pause;
    if (waiting.some(step => step.result)) setTimeout(() => current.set(), EARLY_TICK_MS).unref();
  });
  /** When every worker could begin to renew: performance.now(). */
  let since: number | undefined;
  /** The database's clock less performance.now(). */
  let offset: number | undefined;
  while (!stopping.aborted) {
    try {
      const [row] = await lock.db.execute<{ mine: boolean; now: string; ms: string }>(
        sql`select pg_try_advisory_lock(${ADVISORY_LOCK}) as mine, clock()::text as now, 1000 * extract(epoch from clock()) as ms`,
      );
      if (!row?.mine) since = undefined;
      else {
        const before = offset ?? Number.NaN;
        ({ now } = row);
        offset = Number(row.ms) - performance.now();
        if (Math.abs(offset - before) > CLOCK_TOLERANCE_MS) {
          log.warn({ ms: Math.round(offset - before) }, "the database's clock was set");
          since = undefined;
        }
        since ??= performance.now();
        const mayReclaim = performance.now() - since > RECLAIM_AFTER_MS;
        for (const step of mayReclaim ? steps : [...unclaimed, ...waiting]) await step.run();
      }
    } catch (error) {
      since = undefined;
      log.warn({ err: error }, 'a round of the dispatcher failed');
    }
    pause = new AutoResetEvent();
    await pause.wait(stopping, TICK_MS);
  }
  unsubscribe();
  await Promise.all(steps.map(step => step.running));
  await lock.close();
}
