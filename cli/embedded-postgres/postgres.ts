import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/process/log.ts';
import { CommandError } from '../command-error.ts';
import { type DataDirLock, lockDataDir } from '../data-dir/lock.ts';
import { chooseRestartBackoff } from '../supervisor/restart-delay.ts';
import { type Cluster, DATABASE_NAME, DATABASE_USER, prepareCluster } from './cluster.ts';
import { choosePort } from './port.ts';
import { PortTakenError, type StartOptions, startServer } from './postgres-server.ts';
import { stopOrphans, type WrappedCommand } from './wrapper.ts';

const TRIM_LOG_EVERY_MS = 600_000;
const PORT_TRIES = 5;

interface EmbeddedPostgres {
  /** Includes the password. Does not change when the server restarts. */
  url: string;
  port: number;
  /** The pid of the current postmaster. */
  readonly pid: number;
  /** Shuts it down and releases the data directory. Disconnect clients first. */
  stop(): Promise<void>;
  /** Resolves when it has been stopped. */
  exited: Promise<void>;
}

interface PostgresOptions {
  /** An existing directory: see chooseDataDir. */
  dataDir: string;
  log: Logger;
  /** Aborts the start; later it makes others who want the data directory wait instead of failing. */
  signal?: AbortSignal;
  /** Stands in for /var/lib/windlass in tests. */
  systemDir?: string;
}

/**
 * Starts the embedded Postgres and restarts it when it ends: within 2 s, at the same URL.
 * When this process dies, for any reason, the server stops within 15 s.
 * Throws CommandError if it cannot start.
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, signal, systemDir } = options;
  if (process.platform === 'win32') {
    throw new CommandError('The embedded Postgres does not run on Windows.', {
      hint: 'Set DATABASE_URL.',
    });
  }
  const lock = await lockDataDir({ dataDir, signal });
  try {
    const cluster = await prepareCluster({ dataDir, signal, systemDir });
    const { server, port } = await startOnSomePort(cluster, signal);
    return superviseServer({ cluster, server, port, lock, log, signal });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startOnSomePort(
  cluster: Cluster,
  signal?: AbortSignal,
): Promise<{ server: WrappedCommand; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const port = await choosePort(cluster.dataDir);
    try {
      return { server: await startServer({ cluster, signal, port }), port };
    } catch (error) {
      // Another program took the port since choosePort() tried it.
      if (!(error instanceof PortTakenError) || tries === PORT_TRIES) throw error;
    }
  }
}

interface Running extends Pick<PostgresOptions, 'log' | 'signal'> {
  cluster: Cluster;
  server: WrappedCommand;
  port: number;
  lock: DataDirLock;
}

function superviseServer({ cluster, server, port, lock, log, signal }: Running): EmbeddedPostgres {
  const closing = new AbortController();
  let current = server;
  const announce = () => lock.announceStop();
  signal?.addEventListener('abort', announce, { once: true });
  if (signal?.aborted) announce();
  const trimming = setInterval(() => cluster.log.trim().catch(() => {}), TRIM_LOG_EVERY_MS);
  trimming.unref();

  const restartUntilClosed = async () => {
    for (;;) {
      const code = await current.exited;
      if (closing.signal.aborted) return;
      log.warn({ code }, 'Postgres ended and is restarted');
      const next = await restart({ cluster, port, signal: closing.signal }, log);
      if (!next) return;
      current = next;
      // stop() was called during the restart and stopped only the previous server.
      if (closing.signal.aborted) await current.stop();
    }
  };
  const exited = restartUntilClosed().finally(async () => {
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
      // Finds processes only if wrappers were killed as well.
      await stopOrphans(cluster.directory, cluster.user);
      await lock.release();
    },
    exited,
  };
}

/** Tries until it runs, always on the same port, because its clients know that. Undefined if aborted. */
async function restart(
  start: StartOptions & { signal: AbortSignal },
  log: Logger,
): Promise<WrappedCommand | undefined> {
  const { signal } = start;
  for (let failures = 0; ; failures += 1) {
    try {
      await delay(chooseRestartBackoff(failures), undefined, { signal });
      const server = await startServer(start);
      log.info({ pid: server.pid }, 'Postgres runs again');
      return server;
    } catch (error) {
      if (signal.aborted) return undefined;
      const message = error instanceof Error ? error.message : String(error);
      log.error({ error: message }, 'Postgres did not start and is tried again');
    }
  }
}
