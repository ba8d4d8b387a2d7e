import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/log.ts';
import { type DataLock, lockDataDir } from '../data-lock.ts';
import { StartError } from '../start-error.ts';
import { chooseRestartDelay } from '../supervisor/restart-delay.ts';
import { type Cluster, DATABASE_NAME, DATABASE_USER, prepareCluster } from './cluster.ts';
import { clearDirectory, type KeptCommand } from './keeper.ts';
import { choosePort } from './port.ts';
import { PortTakenError, startServer } from './postgres-server.ts';

const TRIM_LOG_EVERY_MS = 600_000;
const PORT_TRIES = 5;

export interface EmbeddedPostgres {
  /** With the password; the same for as long as this process lives, whatever happens to the server. */
  url: string;
  port: number;
  /** The postmaster's, of the present run. */
  readonly pid: number;
  /** Stops it in order and gives the data directory free. Clients should have gone before. */
  stop(): Promise<void>;
  /** Settles when it has been stopped. */
  exited: Promise<void>;
}

export interface PostgresOptions {
  /** An existing directory: see chooseDataDir. */
  dataDir: string;
  log: Logger;
  /** Given up while starting; afterwards it tells others who want the data directory to wait. */
  signal?: AbortSignal;
  /** Stands in for /var/lib/windlass in tests. */
  systemDir?: string;
}

/**
 * Starts the embedded Postgres and keeps it running: killed, it is back within 2 s at the same URL.
 * When this process dies, however it does, the server is stopped within 15 s.
 * Throws StartError, one line and a hint, where it cannot start.
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, signal, systemDir } = options;
  if (process.platform === 'win32') {
    throw new StartError('The embedded Postgres does not run on Windows.', {
      hint: 'Set DATABASE_URL.',
    });
  }
  const lock = await lockDataDir({ dataDir, signal });
  try {
    const cluster = await prepareCluster({ dataDir, signal, systemDir });
    const { server, port } = await startOnSomePort({ cluster, signal });
    return keepRunning({ cluster, server, port, lock, log, signal });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startOnSomePort(options: {
  cluster: Cluster;
  signal?: AbortSignal;
}): Promise<{ server: KeptCommand; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const port = await choosePort(options.cluster.dataDir);
    try {
      return { server: await startServer({ ...options, port }), port };
    } catch (error) {
      // Taken since it was looked at.
      if (!(error instanceof PortTakenError) || tries === PORT_TRIES) throw error;
    }
  }
}

interface RunningOptions {
  cluster: Cluster;
  server: KeptCommand;
  port: number;
  lock: DataLock;
  log: Logger;
  signal?: AbortSignal;
}

function keepRunning({
  cluster,
  server,
  port,
  lock,
  log,
  signal,
}: RunningOptions): EmbeddedPostgres {
  const closing = new AbortController();
  let current = server;
  const announce = () => lock.announceStop();
  signal?.addEventListener('abort', announce, { once: true });
  if (signal?.aborted) announce();
  const trimming = setInterval(() => cluster.log.trim().catch(() => {}), TRIM_LOG_EVERY_MS);
  trimming.unref();

  const restartForEver = async () => {
    for (;;) {
      const code = await current.exited;
      if (closing.signal.aborted) return;
      log.warn({ code }, 'Postgres ended and is started again');
      const next = await restart({ cluster, port, log, signal: closing.signal });
      if (!next) return;
      current = next;
      // Asked to stop while it was starting: whoever asked knows only the one before.
      if (closing.signal.aborted) await current.stop();
    }
  };
  const exited = restartForEver().finally(async () => {
    clearInterval(trimming);
    signal?.removeEventListener('abort', announce);
    await cluster.log.close();
  });

  return {
    url: `postgres://${DATABASE_USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE_NAME}`,
    port,
    get pid() {
      return current.pid;
    },
    async stop() {
      lock.announceStop();
      closing.abort();
      await current.stop();
      await exited;
      // Finds nothing, unless keepers were killed as well.
      await clearDirectory({ directory: cluster.directory, user: cluster.user });
      await lock.release();
    },
    exited,
  };
}

/** Tries until it runs; never elsewhere, for its clients know this port. Undefined when closing. */
async function restart(options: {
  cluster: Cluster;
  port: number;
  log: Logger;
  signal: AbortSignal;
}): Promise<KeptCommand | undefined> {
  const { log, signal } = options;
  for (let failures = 0; ; failures += 1) {
    try {
      await delay(chooseRestartDelay(failures), undefined, { signal });
      const server = await startServer(options);
      log.info({ pid: server.pid }, 'Postgres runs again');
      return server;
    } catch (error) {
      if (signal.aborted) return undefined;
      const message = error instanceof Error ? error.message : String(error);
      log.error({ error: message }, 'Postgres did not start and is tried again');
    }
  }
}
