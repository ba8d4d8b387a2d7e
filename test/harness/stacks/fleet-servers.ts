import { randomBytes } from 'node:crypto';
import { generateSealKeys } from '../../../shared/secrets/secrets.ts';
import { startTestPostgres, type TestPostgres } from '../databases/postgres-server.ts';
import { missingMinio, startMinio, type TestMinio } from '../servers/minio.ts';
import { startRedis, type TestRedis } from '../servers/redis.ts';
import { missingPrograms, type SkipReason } from '../skip.ts';

/** The servers of a fleet; the stacks of one test file share them, each with a part of its own. */
export interface FleetServers {
  postgres: TestPostgres;
  redis: TestRedis;
  minio: TestMinio;
}

export interface FleetLease {
  servers: FleetServers;
  /** When the last who holds them lets go, they end. */
  release(): Promise<void>;
}

/** Why the fleet form cannot be tested here, if so. */
export function missingFleet(): SkipReason | undefined {
  return missingPrograms('redis-server') ?? missingMinio();
}

let shared: { starting: Promise<FleetServers>; holders: number } | undefined;
let parts = 0;

export async function holdFleetServers(): Promise<FleetLease> {
  shared ??= { starting: startServers(), holders: 0 };
  const own = shared;
  own.holders++;
  let servers: FleetServers;
  try {
    servers = await own.starting;
  } catch (error) {
    if (shared === own) shared = undefined;
    throw error;
  }
  let released = false;
  return {
    servers,
    async release() {
      if (released) return;
      released = true;
      if (--own.holders > 0) return;
      if (shared === own) shared = undefined;
      await stopServers(servers);
    },
  };
}

async function startServers(): Promise<FleetServers> {
  const starts = [startTestPostgres(), startRedis(), startMinio()] as const;
  try {
    const [postgres, redis, minio] = await Promise.all(starts);
    return { postgres, redis, minio };
  } catch (error) {
    for (const start of await Promise.allSettled(starts))
      if (start.status === 'fulfilled') await start.value.stop();
    throw error;
  }
}

async function stopServers({ postgres, redis, minio }: FleetServers): Promise<void> {
  await Promise.all([postgres.stop(), redis.stop(), minio.stop()]);
}

/**
 * The settings of a new fleet on these servers: a database, a Redis database and a bucket of its own, and new keys. The
 * database is empty unless it is to be migrated.
 */
export async function makeFleetSettings(
  servers: FleetServers,
  { migrated = false } = {},
): Promise<Record<string, string>> {
  const { postgres, redis, minio } = servers;
  const part = parts++;
  const name = `fleet-${part}`;
  const { publicKey, privateKey } = await generateSealKeys();
  return {
    DATABASE_URL: await (migrated ? postgres.createMigrated(name) : postgres.createDatabase(name)),
    // A Redis has 16 databases.
    REDIS_URL: `${redis.url}/${part % 16}`,
    S3_ENDPOINT: minio.endpoint,
    S3_BUCKET: name,
    S3_ACCESS_KEY: minio.accessKey,
    S3_SECRET_KEY: minio.secretKey,
    SECRET_KEY: randomBytes(32).toString('base64url'),
    SEAL_PUBLIC_KEY: publicKey,
    SEAL_PRIVATE_KEYS: privateKey,
  };
}
