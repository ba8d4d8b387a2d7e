import { failureLevel } from '../../shared/database/failure-level.ts';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';
import { dispatchWaiting } from './dispatch-waiting.ts';
import { giveUpDispatcherLock, takeDispatcherLock } from './dispatcher-lock.ts';
import { DispatcherStep as Step } from './dispatcher-step.ts';
import { SILENT_TICKS, SilentWorkers } from './expired-leases.ts';
import { redispatchUnclaimed } from './redispatch-lost-entries.ts';
import { warnOfUnsupported } from './warn-of-unsupported.ts';

const TICK_MS = 1_000;

/**
 * Gives free slots to waiting jobs and reclaims a lease after so many silent `looks`. Each tick asks for an advisory lock
 * over the direct connection, so there is one dispatcher at a time (decision 3).
 */
export async function runDispatcher(
  context: WorkerContext,
  { looks = SILENT_TICKS } = {},
): Promise<void> {
  const { stopping, log } = context;
  const { direct } = context.database;
  const silent = new SilentWorkers(looks);
  const unclaimed = QUEUES.map(
    queue => new Step(`unclaimed, ${queue}`, log, () => redispatchUnclaimed(context, queue)),
  );
  const waiting = new Map(
    QUEUES.map(queue => {
      const turns = { queue, last: '' };
      return [queue, new Step(`waiting, ${queue}`, log, () => dispatchWaiting(context, turns))];
    }),
  );
  const others = new Step('unsupported jobs', log, warnOfUnsupported(context));
  const steps = [
    new Step('stuck transactions', log, () => silent.endStuckTransactions(context)),
    new Step('expired leases', log, () => silent.reclaimExpiredLeases(context)),
    ...unclaimed,
    ...waiting.values(),
    others,
  ];
  let unsubscribe: (() => void) | undefined;
  while (!stopping.aborted) {
    let isDispatcher = false;
    try {
      isDispatcher = await takeDispatcherLock(direct);
      if (isDispatcher) {
        unsubscribe ??= giveSlotsSoon(context, waiting);
        for (const step of steps) await step.run();
      }
    } catch (error) {
      isDispatcher = false;
      log[failureLevel(error)]({ err: error }, 'a round of the dispatcher failed');
    }
    if (!isDispatcher) {
      silent.forget();
      unsubscribe?.();
      unsubscribe = undefined;
    }
    await sleep(stopping, TICK_MS);
  }
  unsubscribe?.();
  await Promise.all(steps.map(step => step.close()));
  // The connection lasts as long as this process, whose jobs may take a while to end.
  await giveUpDispatcherLock(direct);
}

/** Looks at a queue before the next tick when a job has to wait, or when a slot becomes free while jobs wait. */
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
