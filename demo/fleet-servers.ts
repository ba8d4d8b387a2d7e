import { randomBytes } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DATABASE_NAME, DATABASE_USER, prepareCluster } from '../cli/embedded-postgres/cluster.ts';
import { BUILT_PROGRAMS, findProgram, TEST_PROGRAMS } from '../scripts/programs.ts';
import { launchMinio, launchPostgres, launchRedis } from '../servers/backing-services.ts';
import { findFreePort } from '../servers/free-port.ts';
import { awaitExit, endChild } from '../servers/processes.ts';

export interface FleetServers {
  /** DATABASE_URL, REDIS_URL and the S3_ settings of these servers. */
  settings: Record<string, string>;
  stop(): Promise<void>;
}

/** One line with the missing programs and how to install them; undefined if all are installed. */
export function describeMissingPrograms(): string | undefined {
  const missing: string[] = [];
  if (!findProgram('redis-server'))
    missing.push(`redis-server (Debian: apt-get install ${TEST_PROGRAMS['redis-server']})`);
  if (!findProgram('minio'))
    missing.push(`minio (with Go: go install ${BUILT_PROGRAMS.minio}, then have it in PATH)`);
  if (missing.length === 0) return undefined;
  return `The fleet needs what is not on this machine: ${missing.join('; ')}.`;
}

/** Starts npm's PostgreSQL, Redis and MinIO on free ports of 127.0.0.1. They end with this process. */
export async function startFleetServers(directory: string): Promise<FleetServers> {
  const starts = [
    startPostgres(join(directory, 'postgres')),
    startRedis(join(directory, 'redis')),
    startMinio(join(directory, 'minio')),
  ];
  const ended = await Promise.allSettled(starts);
  const servers = ended.flatMap(end => (end.status === 'fulfilled' ? [end.value] : []));
  const stop = async () => {
    await Promise.all(servers.map(server => server.stop()));
  };
  const failure = ended.find(end => end.status === 'rejected');
  if (failure) {
    await stop();
    throw failure.reason;
  }
  return { settings: Object.assign({}, ...servers.map(server => server.settings)), stop };
}

async function startPostgres(directory: string): Promise<FleetServers> {
  await mkdir(directory);
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(directory, 0o711);
  const cluster = await prepareCluster({ dataDir: directory });
  const port = await findFreePort();
  const child = await launchPostgres(cluster, port);
  const url = `postgres://${DATABASE_USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  return {
    settings: { DATABASE_URL: url },
    stop: async () => {
      // Fast shutdown: TERM would wait for connected clients.
      child.kill('SIGINT');
      await awaitExit(child);
      await cluster.log.close();
    },
  };
}

async function startRedis(directory: string): Promise<FleetServers> {
  await mkdir(directory);
  const port = await findFreePort();
  const child = await launchRedis({ program: requireProgram('redis-server'), directory, port });
  return {
    settings: { REDIS_URL: `redis://127.0.0.1:${port}` },
    stop: () => endChild(child, GRACE_MS),
  };
}

async function startMinio(directory: string): Promise<FleetServers> {
  await mkdir(directory);
  const port = await findFreePort();
  const keys = { accessKey: 'windlass-demo', secretKey: randomBytes(16).toString('hex') };
  const child = await launchMinio({ program: requireProgram('minio'), directory, port, ...keys });
  return {
    settings: {
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_ACCESS_KEY: keys.accessKey,
      S3_SECRET_KEY: keys.secretKey,
    },
    stop: () => endChild(child, GRACE_MS),
  };
}

const GRACE_MS = 5_000;

function requireProgram(name: string): string {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`There is no ${name} on this machine.`);
  return program;
}
