import type { JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import type { watchLimits } from './command-limits.ts';

const WAITING = 'waiting: the disk of the service is full';

/**
 * Holds a command back whose output has no space on the disk: nothing more is read of it, so that it waits in its own
 * write (decision 60). Ends when there is space, or the attempt is over; a command that is stopped meanwhile loses what
 * it still prints.
 */
export async function awaitDisk(
  context: JobContext<'command'>,
  output: OutputWriter,
  limits: ReturnType<typeof watchLimits>,
): Promise<void> {
  if (!output.shortage) return;
  context.log.warn({ err: output.shortage }, 'the output of a command waits for space');
  await tell(context, WAITING);
  await output.awaitDisk(AbortSignal.any([context.signal, limits.signal]));
  const isStopped = wasCancelled(context) || limits.signal.aborted;
  if (output.shortage && isStopped) limits.endIfFull(output.shortage);
  await tell(context, null);
}

/** Removes what an attempt that was lost meanwhile has told. */
export async function forgetWait(context: JobContext<'command'>): Promise<void> {
  if (context.job.message === WAITING) await tell(context, null);
}

async function tell({ job, worker, update }: JobContext, message: string | null): Promise<void> {
  if (job.message === message) return;
  await update({ message });
  worker.notifications.publish('job', job.id);
}
