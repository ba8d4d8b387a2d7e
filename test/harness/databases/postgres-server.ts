import type { ChildProcess } from 'node:child_process';
import postgres from 'postgres';
import { DATABASE_USER, prepareCluster } from '../../../cli/embedded-postgres/cluster.ts';
import { launchPostgres } from '../../../servers/backing-services.ts';
import { findFreePort } from '../../../servers/free-port.ts';
import { awaitExit } from '../../../servers/processes.ts';
import { migrateDatabase } from '../../../shared/database/migrate.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { copyCluster } from './cluster-template.ts';

export interface TestPostgres {
  host: '127.0.0.1';
  port: number;
  /** The URL of a database of this server. */
  url(database: string): string;
  /** Makes an empty database; its URL. */
  createDatabase(name: string): Promise<string>;
  /** Makes a database with the tables of Windlass; its URL. */
  createMigrated(name: string): Promise<string>;
  /** Ends the server as a crash does; what was committed is kept. */
  down(): Promise<void>;
  /** Starts it again on the same data and port. */
  up(): Promise<void>;
  /** Ends it; everything it stored is removed. */
  stop(): Promise<void>;
}

/** Starts a PostgreSQL of its own, on a free port of 127.0.0.1, from the binaries that npm brings. */
export async function startTestPostgres(): Promise<TestPostgres> {
  const directory = makeTempDir('postgres');
  const cluster = await copyCluster(directory.path)
    .then(() => prepareCluster({ dataDir: directory.path }))
    .catch(error => {
      directory.remove();
      throw error;
    });
  const port = await findFreePort();
  let running = await launchPostgres(cluster, port);
  const url = (database: string) =>
    `postgres://${DATABASE_USER}:${cluster.password}@127.0.0.1:${port}/${database}`;
  const create = async (name: string, template: string) => {
    // From a database that is none's template: a template has no other session meanwhile.
    const client = postgres(url('template1'), { max: 1 });
    try {
      await client`create database ${client(name)} template ${client(template)}`;
    } finally {
      await client.end({ timeout: 2 });
    }
    return url(name);
  };
  const server: TestPostgres = {
    host: '127.0.0.1',
    port,
    url,
    createDatabase: name => create(name, 'template0'),
    async createMigrated(name) {
      const made = await create(name, 'postgres');
      // Does what is left to do: all of it, where there is no test run's template.
      await migrateDatabase(made);
      return made;
    },
    // SIGQUIT: it leaves without a checkpoint, and with all of its own processes.
    down: () => end(running, 'SIGQUIT'),
    async up() {
      running = await launchPostgres(cluster, port);
    },
    async stop() {
      await end(running, 'SIGQUIT');
      await cluster.log.close();
      directory.remove();
    },
  };
  return server;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = awaitExit(child);
  child.kill(signal);
  await ended;
}
