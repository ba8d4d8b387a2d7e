import type { ChildProcess } from 'node:child_process';
import { execFile } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { DATABASE_USER, prepareCluster } from '../../../cli/embedded-postgres/cluster.ts';
import { launchPostgres } from '../../../servers/backing-services.ts';
import { findFreePort } from '../../../servers/free-port.ts';
import { awaitExit } from '../../../servers/processes.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { waitFor } from '../wait-for.ts';
import { copyCluster } from './cluster-template.ts';

export interface ReplicatedPostgres {
  /** The URL of a database, which names both servers, the standby first. */
  url(database: string): string;
  /** The URL of a database at the one that is the standby at first. */
  standbyUrl(database: string): string;
  /** Ends the primary as a crash does. */
  killPrimary(): Promise<void>;
  /** Starts the old primary again, as a primary, as if nobody knew of the other one. */
  restartOldPrimary(): Promise<void>;
  /** Makes the standby the primary. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a primary, and a standby that has each commit before its client is answered. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const directories = [makeTempDir('primary'), makeTempDir('standby')] as const;
  const [one, two] = directories.map(({ path }) => path) as [string, string];
  await copyCluster(one);
  const primary = await prepareCluster({ dataDir: one });
  const files = ['postgres', 'postgres.password'].map(name => join(one, name));
  await promisify(execFile)('cp', ['-Rp', ...files, two]);
  const standby = await prepareCluster({ dataDir: two });
  const [portOne, portTwo] = [await findFreePort(), await findFreePort()];
  const login = `${DATABASE_USER}:${primary.password}`;
  const at = (hosts: string, database: string) => `postgres://${login}@${hosts}/${database}`;
  const [hostOne, hostTwo] = [`127.0.0.1:${portOne}`, `127.0.0.1:${portTwo}`];

  let runningOne: ChildProcess = await launchPostgres(primary, portOne);
  const conninfo = `host=127.0.0.1 port=${portOne} user=${DATABASE_USER} password=${primary.password}`;
  appendFileSync(
    join(standby.directory, 'postgresql.auto.conf'),
    `primary_conninfo = '${conninfo}'\n`,
  );
  writeFileSync(join(standby.directory, 'standby.signal'), '');
  const runningTwo = await launchPostgres(standby, portTwo);

  await ask(at(hostOne, 'postgres'), async sql => {
    await sql`alter system set synchronous_standby_names = '*'`;
    await sql`select pg_reload_conf()`;
    const isSynchronous = async () =>
      (await sql`select from pg_stat_replication where sync_state = 'sync'`).length === 1;
    await waitFor(isSynchronous, { what: 'the standby to be synchronous' });
  });

  return {
    url: database => `${at(`${hostTwo},${hostOne}`, database)}?target_session_attrs=read-write`,
    standbyUrl: database => at(hostTwo, database),
    killPrimary: () => kill(runningOne),
    async restartOldPrimary() {
      runningOne = await launchPostgres(primary, portOne);
    },
    promote: () =>
      ask(at(hostTwo, 'postgres'), async sql => {
        await sql`select pg_promote()`;
      }),
    async stop() {
      await Promise.all([kill(runningOne), kill(runningTwo)]);
      await Promise.all([primary.log.close(), standby.log.close()]);
      for (const directory of directories) directory.remove();
    },
  };
}

async function ask(url: string, work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 2 });
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = awaitExit(child);
  // Its own processes go with it, as those of a machine that fails do.
  child.kill('SIGQUIT');
  await ended;
}
