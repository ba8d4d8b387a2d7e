import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import {
  DATABASE_NAME,
  DATABASE_USER,
  prepareCluster,
} from '../../cli/embedded-postgres/cluster.ts';
import { prepareDatabase } from '../../cli/service/migrate.ts';
import { launchPostgres } from '../../servers/backing-services.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { awaitExit, findDescendants } from '../../servers/processes.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { startWorkers, stopWorkers, untilDrained } from './run-jobs.ts';
import { openWindlass } from './windlass.ts';

const PROCESSES = 4;
const WORKERS = 50;
/** With spare ones for what connects at the start. */
const CONNECTIONS = 5 * PROCESSES * WORKERS;
/** Until connections that were opened at the start are closed: see shared/database/pool.ts. */
const SETTLE_MS = 45_000;
const IDLE_MS = 30_000;
const JOBS = 50;
const PAUSE_MS = 200;
const MAX_CORE = 0.1;
const MAX_START_MS = 100;
/** proc(5): ticks of the processor a second, on Linux everywhere. */
const TICKS = 100;

/** 200 workers on one PostgreSQL: what they cost it while nothing is to be done, and how soon a command begins then. */
export async function measureManyWorkers(directory: string): Promise<{ passed: boolean }> {
  const dataDir = join(directory, 'many');
  mkdirSync(dataDir, { mode: 0o711 });
  // Whatever the umask is: PostgreSQL may run as another user.
  chmodSync(dataDir, 0o711);
  const cluster = await prepareCluster({ dataDir });
  const port = await findFreePort();
  const server = await launchPostgres(cluster, port, CONNECTIONS);
  const databaseUrl = `postgres://${DATABASE_USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  await prepareDatabase(databaseUrl, readConfig({ ADMIN_PASSWORD: 'of a bench' }));
  const servers = { databaseUrl, redisUrl: '' };
  const workers = await startWorkers('windlass', servers, {
    processes: PROCESSES,
    workers: WORKERS,
  });
  const contender = await openWindlass(servers);
  const sql = postgres(databaseUrl, { max: 1 });
  try {
    await delay(SETTLE_MS);
    const core = await measureProcessor(server);
    const connections = await countConnections(sql);
    for (let n = 0; n < JOBS; n++) {
      await contender.accept();
      await untilDrained(contender);
      await delay(PAUSE_MS);
    }
    const [row] = await sql<{ ms: number }[]>`
      select percentile_cont(0.5) within group (order by extract(epoch from started - created) * 1000) as ms from jobs`;
    const ms = Number(row?.ms);
    const passed = core <= MAX_CORE && ms <= MAX_START_MS;
    console.log(
      `${passed ? 'ok  ' : 'MISS'} ${PROCESSES * WORKERS} workers, ${connections} connections: PostgreSQL takes ${(core * 100).toFixed(1)} % of a processor (at most ${MAX_CORE * 100} %) while nothing is to be done, and a command begins after ${ms.toFixed(0)} ms at the median (at most ${MAX_START_MS})`,
    );
    return { passed };
  } finally {
    await sql.end();
    await contender.close();
    await stopWorkers(workers);
    // Fast shutdown: TERM would wait for connected clients.
    server.kill('SIGINT');
    await awaitExit(server);
    await cluster.log.close();
  }
}

async function countConnections(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ n: string }[]>`
    select count(*) as n from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  return Number(row?.n);
}

/** The share of one processor that the server and all of its processes take. */
async function measureProcessor(server: ChildProcess): Promise<number> {
  const pids = [server.pid ?? 0, ...findDescendants([server.pid ?? 0]).map(({ pid }) => pid)];
  const read = () => pids.reduce((sum, pid) => sum + readTicks(pid), 0);
  const before = read();
  await delay(IDLE_MS);
  return (read() - before) / TICKS / (IDLE_MS / 1_000);
}

/** Processor time of a process, and of its children that have ended. */
function readTicks(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
  } catch {
    return 0;
  }
}
