import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type CommandError, ifMissing } from '../command-error.ts';
import { type Cluster, requireNoOrphans } from './cluster.ts';
import { listSettings } from './postgres-settings.ts';
import { translatePostgresError, translateSystemError } from './translate-errors.ts';
import { runWrapped, type WrappedCommand } from './wrapper.ts';

const READY_CHECK_MS = 20;
const LOCK_WAIT_MS = 10_000;

/** Another program listens on the port that was chosen for Postgres. */
export class PortTakenError extends Error {
  readonly port: number;
  constructor(port: number) {
    super(`Port ${port} is taken by another program.`);
    this.name = 'PortTakenError';
    this.port = port;
  }
}

export interface StartOptions {
  cluster: Cluster;
  port: number;
  signal?: AbortSignal;
}

/**
 * Stops orphans of an earlier run, starts the server and waits until it accepts connections, however long recovery
 * takes. Waits up to 10 s for the lock of a server that is shutting down. Throws CommandError, PortTakenError, or the
 * signal's reason.
 */
export async function startServer(options: StartOptions): Promise<WrappedCommand> {
  const deadline = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    const outcome = await tryToStart(options);
    if (!('retry' in outcome)) return outcome;
    if (Date.now() > deadline) throw outcome.retry;
    await delay(100, undefined, { signal: options.signal });
  }
}

async function tryToStart({
  cluster,
  port,
  signal,
}: StartOptions): Promise<WrappedCommand | { retry: CommandError }> {
  const { directory, user, binaries, log } = cluster;
  signal?.throwIfAborted();
  await requireNoOrphans(directory, user);
  const mark = await log.mark();
  const server = await runWrapped({
    directory,
    user,
    output: log.descriptor,
    command: [binaries.postgres, '-D', directory, ...listSettings(port)],
  });
  let ended: { code: number | undefined } | undefined;
  const exited = server.exited.then(code => {
    ended = { code };
  });
  try {
    while (!ended && !(await isReady(directory, server.pid))) {
      if (signal?.aborted) await server.stop();
      await Promise.race([exited, delay(READY_CHECK_MS)]);
    }
  } catch (error) {
    await server.stop();
    throw translateSystemError(error, directory);
  }
  signal?.throwIfAborted();
  if (!ended) return server;
  const output = await log.readSince(mark);
  if (/could not bind|Address already in use/.test(output)) throw new PortTakenError(port);
  const failure = translatePostgresError({ output, task: 'start', directory, code: ended.code });
  if (/lock file "[^"]*" already exists|pre-existing shared memory/.test(output))
    return { retry: failure };
  throw failure;
}

/** Postgres writes its pid into the first line of its lock file, its state into the eighth. */
async function isReady(directory: string, pid: number): Promise<boolean> {
  const text = await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(ifMissing(''));
  const lines = text.split('\n');
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}
