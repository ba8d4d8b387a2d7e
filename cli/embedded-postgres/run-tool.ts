import type { SystemUser } from '../../shared/process/system-users.ts';
import type { ServerLog } from './server-log.ts';
import { translatePostgresError } from './translate-errors.ts';
import { runWrapped } from './wrapper.ts';

/** Runs a tool of Postgres, such as initdb, to its end. Throws CommandError if it fails, or the signal's reason. */
export async function runTool(options: {
  /** The real path of its working directory. */
  directory: string;
  command: string[];
  user: SystemUser | undefined;
  log: ServerLog;
  /** What it does: follows "could not" in the message. */
  task: string;
  signal?: AbortSignal;
}): Promise<void> {
  const { log, task, signal, ...command } = options;
  signal?.throwIfAborted();
  const mark = await log.mark();
  const tool = await runWrapped({ ...command, output: log.descriptor });
  const stop = () => void tool.stop();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  const code = await tool.exited.finally(() => signal?.removeEventListener('abort', stop));
  signal?.throwIfAborted();
  if (code === 0) return;
  throw translatePostgresError({
    output: await log.readSince(mark),
    task,
    directory: options.directory,
    code,
  });
}
