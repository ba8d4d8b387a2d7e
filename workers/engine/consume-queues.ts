import type { Worker } from 'bullmq';
import { type JobKind, QUEUES_OF, type QueueName } from '../../shared/jobs/catalog.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import type { Handler, WorkerContext } from '../context.ts';
import { runJob } from './run-job.ts';
import { SessionAffinity } from './session-affinity.ts';
import { SpareSlots } from './spare-slots.ts';

/** How many jobs of each queue a worker runs at once. */
type Slots = Partial<Record<QueueName, number>>;

interface Consumption {
  /** The slots for videos, where this worker makes any. */
  videoSlots: SpareSlots | undefined;
  /** Takes no more jobs, or takes them again; those that run go on. */
  setDraining(draining: boolean): void;
  /** Ends it, and waits for the jobs that run. */
  stop(): Promise<unknown>;
}

/** Runs the jobs that the queues give to this worker. */
export function consumeQueues(
  context: WorkerContext,
  slots: Slots,
  handlers: Map<JobKind, Handler<JobKind>>,
): Consumption {
  const run = (entry: QueueEntry) => runJob(context, entry, handlers);
  const affinities: SessionAffinity[] = [];
  const videoSlots = slots.video ? new SpareSlots(slots.video, context.stopping) : undefined;
  const consume = ([name, count]: [string, number]): Worker => {
    const queue = name as QueueName;
    const log = (error: Error) => context.log.debug({ err: error, queue }, 'an error of the queue');
    let process: (entry: QueueEntry) => Promise<unknown> = run;
    if (QUEUES_OF.remote.some(other => other === queue)) {
      const affinity = new SessionAffinity(context, { run, queue, slots: count });
      affinities.push(affinity);
      process = entry => affinity.process(entry);
    } else if (queue === 'video' && videoSlots) {
      process = entry => videoSlots.occupy(() => run(entry));
    }
    return context.queues.worker(queue, count, process).on('error', log);
  };
  const consumers = Object.entries(slots).map(consume);
  return {
    videoSlots,
    setDraining(draining) {
      if (videoSlots) videoSlots.isDraining = draining;
      for (const affinity of affinities) affinity.isDraining = draining;
      for (const consumer of consumers) {
        if (draining) void consumer.pause(true);
        else consumer.resume();
      }
    },
    stop() {
      const closing = consumers.map(consumer => consumer.close());
      return Promise.allSettled([...closing, ...affinities.map(affinity => affinity.close())]);
    },
  };
}
