import { sleep } from '../../shared/process/abort.ts';

/** Runners and terminals send these to all processes of a worker (systemd by default, Ctrl-C). */
const STOP_SIGNALS = new Set<NodeJS.Signals | null>(['SIGTERM', 'SIGINT', 'SIGHUP']);
/** The worker's own signal comes with its program's. */
const OWN_STOP_MS = 2_000;

export const isStopSignal = (signal: NodeJS.Signals | null) => STOP_SIGNALS.has(signal);

/**
 * Call where a program ended by a stop signal. Throws the job's reason if its worker is told to stop as well: then the
 * file is not to blame. Resolves if the program alone was, for example by what frees the memory of a machine.
 */
export async function throwIfWorkerStops(job: AbortSignal | undefined): Promise<void> {
  if (!job) return;
  await sleep(job, OWN_STOP_MS);
  job.throwIfAborted();
}
