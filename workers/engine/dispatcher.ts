import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';
import { dispatchWaiting, redispatchUnclaimed } from './dispatch-waiting.ts';
import { DispatcherStep as Step } from './dispatcher-step.ts';
import { endStuckTransactions, reclaimExpiredLeases } from './expired-leases.ts';
import { warnOfNotUnderstood } from './newer-payloads.ts';

const TICK_MS = 1_000;
/**
 * No lease is reclaimed for so long after a dispatcher began or the database's clock was set: every worker can renew first,
 * after an outage of the database too.
 */
const RECLAIM_AFTER_MS = 2 * RENEW_MS;
/** The database's clock was set where it differs by more from what has passed here between two rounds. */
const CLOCK_TOLERANCE_MS = 2_000;

/**
 * Gives free slots to waiting jobs, in turns between users, and reclaims expired leases. One dispatcher at a time: each tick
 * asks for an advisory lock over the direct connection. The lock lasts as long as that; when it breaks another upkeep worker
 * gets the lock.
 */
export async function runDispatcher(context: WorkerContext): Promise<void> {
  const { stopping, log } = context;
  const { direct } = context.database;
  /** The database's clock at the beginning of this round. */
  let now = '';
  const leases = [
    new Step('stuck transactions', log, () => endStuckTransactions(context)),
    new Step('expired leases', log, () => reclaimExpiredLeases(context, now)),
  ];
  const unclaimed = QUEUES.map(
    queue => new Step(`unclaimed, ${queue}`, log, () => redispatchUnclaimed(context, queue)),
  );
  const waiting = new Map(
    QUEUES.map(queue => {
      const turns = { queue, last: '' };
      return [queue, new Step(`waiting, ${queue}`, log, () => dispatchWaiting(context, turns))];
    }),
  );
  const others = new Step('not understood', log, warnOfNotUnderstood(context));
  const giving = [...unclaimed, ...waiting.values(), others];
  let unsubscribe: (() => void) | undefined;
  /** When every worker could begin to renew: performance.now(). */
  let since: number | undefined;
  /** The database's clock less performance.now(). */
  let offset: number | undefined;
  while (!stopping.aborted) {
    try {
      const [row] = await direct.query<{ mine: boolean; now: string; ms: string }>(
        'select pg_try_advisory_lock($1) as mine, clock()::text as now, 1000 * extract(epoch from clock()) as ms',
        [ADVISORY_LOCKS.dispatcher],
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
        unsubscribe ??= giveSlotsSoon(context, waiting);
        const mayReclaim = performance.now() - since > RECLAIM_AFTER_MS;
        for (const step of mayReclaim ? [...leases, ...giving] : giving) await step.run();
      }
    } catch (error) {
      since = undefined;
      log.warn({ err: error }, 'a round of the dispatcher failed');
    }
    if (since === undefined) {
      unsubscribe?.();
      unsubscribe = undefined;
    }
    await sleep(stopping, TICK_MS);
  }
  unsubscribe?.();
  await Promise.all([...leases, ...giving].map(step => step.close()));
  // The connection lasts as long as this process, whose jobs may take a while to end.
  await direct.query('select pg_advisory_unlock_all()').catch(() => {});
}

/** A job that has to wait, or a slot that is free again while others wait, is looked at before the next round. */
function giveSlotsSoon(
  { notifications }: WorkerContext,
  waiting: Map<string, Step<boolean>>,
): () => void {
  const begin = (step: Step<boolean> | undefined) => step?.soon();
  const beginIfMoreWait = (step: Step<boolean> | undefined) => {
    if (step?.running || step?.result !== false) begin(step);
  };
  const subscriptions = [
    notifications.on('waiting', queue => begin(waiting.get(queue))),
    notifications.on('freed', queue => beginIfMoreWait(waiting.get(queue))),
    // What was dispatched and is cancelled gives its slot back.
    notifications.on('cancel', () => waiting.forEach(beginIfMoreWait)),
  ];
  return () => {
    for (const unsubscribe of subscriptions) unsubscribe();
  };
}
