import { sql } from 'drizzle-orm';
import { openDatabase } from '../../shared/database/connect.ts';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import type { WorkerContext } from '../context.ts';
import { AutoResetEvent } from './auto-reset-event.ts';
import { dispatchWaiting, redispatchUnclaimed } from './dispatch-waiting.ts';
import { DispatcherStep as Step } from './dispatcher-step.ts';
import { endStuckTransactions, reclaimExpiredLeases } from './expired-leases.ts';

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
  const lock = openDatabase(context.config.DATABASE_URL ?? '', {
    max: 1,
    // A dispatcher that hangs, or whose machine is gone, loses its connection and so the lock.
    idleSessionMs: 10 * TICK_MS,
  });
  const leases = [
    new Step('stuck transactions', log, () => endStuckTransactions(context)),
    new Step('expired leases', log, () => reclaimExpiredLeases(context)),
  ];
  const unclaimed = QUEUES.map(
    queue => new Step(`unclaimed, ${queue}`, log, () => redispatchUnclaimed(context, queue)),
  );
  const waiting = QUEUES.map(
    queue => new Step(`waiting, ${queue}`, log, () => dispatchWaiting(context, queue)),
  );
  const steps = [...leases, ...unclaimed, ...waiting];
  let pause = new AutoResetEvent();
  // With a backlog the pause between two rounds ends early when a job changed: its queue may have room.
  const unsubscribe = context.notifications.on('job', () => {
    const current = pause;
    if (waiting.some(step => step.result)) setTimeout(() => current.set(), EARLY_TICK_MS).unref();
  });
  let since: number | undefined;
  while (!stopping.aborted) {
    try {
      const [row] = await lock.db.execute<{ mine: boolean }>(
        sql`select pg_try_advisory_lock(${ADVISORY_LOCK}) as mine`,
      );
      if (!row?.mine) since = undefined;
      else {
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
