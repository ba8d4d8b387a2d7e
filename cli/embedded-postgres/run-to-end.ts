import { explainFailure } from './explain-failure.ts';
import { runKept } from './keeper.ts';
import type { ServerLog } from './server-log.ts';
import type { ServiceUser } from './service-user.ts';

/** Runs a program of Postgres that ends by itself. Throws StartError when it fails, or the signal's reason. */
export async function runToEnd(options: {
  /** Where it works, by its real path. */
  directory: string;
  command: string[];
  user: ServiceUser | undefined;
  log: ServerLog;
  /** What it does, to follow "could not". */
  task: string;
  signal?: AbortSignal;
}): Promise<void> {
  const { log, task, signal, ...command } = options;
  signal?.throwIfAborted();
  const mark = await log.mark();
  const kept = await runKept({ ...command, output: log.descriptor });
  const stop = () => void kept.stop();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  const code = await kept.exited.finally(() => signal?.removeEventListener('abort', stop));
  signal?.throwIfAborted();
  if (code === 0) return;
  throw explainFailure({
    output: await log.readSince(mark),
    task,
    directory: options.directory,
    code,
  });
}
