/**
 * `npm run bench:core`: compares the job core with other queues on the same PostgreSQL and Redis, in the same run. Needs
 * redis-server for one part. Fails if a ratio misses its target in docs/performance.md. Arguments select parts: pg-boss, graphile-worker,
 * fleet, warm, scale, many.
 */
import { rmSync } from 'node:fs';
import { pino } from 'pino';
import { startPostgres } from '../cli/embedded-postgres/postgres.ts';
import { prepareDatabase } from '../cli/service/migrate.ts';
import { findProgram } from '../scripts/programs.ts';
import { launchRedis } from '../servers/backing-services.ts';
import { findFreePort } from '../servers/free-port.ts';
import { endChild } from '../servers/processes.ts';
import { readConfig } from '../shared/settings/config.ts';
import { type ComparisonResult, compare } from './compare.ts';
import { openBareBullmq } from './core/bare-bullmq.ts';
import { compareScale } from './core/compare-scale.ts';
import type { Contender, Servers } from './core/contender.ts';
import { openGraphileWorker } from './core/graphile-worker.ts';
import { measureManyWorkers } from './core/many-workers.ts';
import { openPgBoss } from './core/pg-boss.ts';
import { measureJobs, startWorkers, stopWorkers } from './core/run-jobs.ts';
import { measureWarmCommand } from './core/warm-command.ts';
import { openWindlass } from './core/windlass.ts';
import type { WorkerName } from './core/worker.ts';
import { makeDirectories, readParts } from './prepare.ts';

const JOBS = 2_000;
const WORKERS = 2;

const isWanted = readParts(['pg-boss', 'graphile-worker', 'fleet', 'warm', 'scale', 'many']);

const { directory, dataDir } = makeDirectories();
const log = pino({ level: 'silent' });
const database = await startPostgres({ dataDir, log });
const redisPort = await findFreePort();
const program = findProgram('redis-server');
const redis =
  program && isWanted('fleet')
    ? await launchRedis({ program, directory, port: redisPort })
    : undefined;
const servers = { databaseUrl: database.url, redisUrl: `redis://127.0.0.1:${redisPort}` };
await prepareDatabase(database.url, readConfig({ ADMIN_PASSWORD: 'of a bench' }));

try {
  const results = [
    ...(isWanted('pg-boss') ? [await compareWith('pg-boss', openPgBoss, 0.8)] : []),
    ...(isWanted('graphile-worker')
      ? [await compareWith('graphile-worker', openGraphileWorker, 0.8)]
      : []),
    ...(redis ? [await compareFleet()] : []),
    ...(isWanted('warm')
      ? [await measureWarmCommand({ directory, databaseUrl: database.url })]
      : []),
    ...(isWanted('scale') ? [await compareScale(database.url)] : []),
    ...(isWanted('many') ? [await measureManyWorkers(directory)] : []),
  ];
  process.exitCode = results.every(result => result.passed) ? 0 : 1;
} finally {
  await database.stop();
  if (redis) await endChild(redis, 0);
  rmSync(directory, { recursive: true, force: true });
}

async function compareWith(
  name: WorkerName,
  open: (servers: Servers) => Promise<Contender>,
  target: number,
): Promise<ComparisonResult> {
  const { databaseUrl } = servers;
  return compareJobs({
    name: `jobs that do nothing, against ${name}`,
    ours: { name: 'windlass', contender: await openWindlass({ databaseUrl }) },
    peer: { name, contender: await open(servers) },
    target,
  });
}

async function compareFleet(): Promise<ComparisonResult> {
  return compareJobs({
    name: 'the same in the fleet form, against BullMQ alone',
    ours: { name: 'fleet', contender: await openWindlass(servers) },
    peer: { name: 'bullmq', contender: await openBareBullmq(servers) },
    target: 0.3,
  });
}

interface Side {
  name: WorkerName;
  contender: Contender;
}

async function compareJobs(options: {
  name: string;
  ours: Side;
  peer: Side;
  target: number;
}): Promise<ComparisonResult> {
  const { name, ours, peer, target } = options;
  const workers = [];
  for (const side of [ours, peer])
    workers.push(...(await startWorkers(side.name, servers, { processes: WORKERS })));
  try {
    return await compare({
      name,
      ours: () => measureJobs(ours.contender, JOBS),
      baseline: () => measureJobs(peer.contender, JOBS),
      unit: 'jobs/s',
      target,
    });
  } finally {
    await stopWorkers(workers);
    await Promise.all([ours.contender.close(), peer.contender.close()]);
  }
}
