import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type Cluster,
  DATABASE_NAME,
  DATABASE_USER,
  prepareCluster,
} from '../../../cli/embedded-postgres/cluster.ts';
import { prepareRoles } from '../../../cli/embedded-postgres/roles.ts';
import { launchPostgres } from '../../../servers/backing-services.ts';
import { awaitExit } from '../../../servers/processes.ts';
import { migrateDatabase } from '../../../shared/database/migrate.ts';
import { makeTempDir, type TempDir } from '../files/temp-dir.ts';
import { startOnFreePort } from '../servers/start-on-free-port.ts';
import { waitFor } from '../wait-for.ts';

/** Tells the processes of the tests where the template is, or will be. */
const VARIABLE = 'WINDLASS_TEST_CLUSTER';
const PARTS = ['postgres', 'postgres.password'];

/** Names a folder for the template of one test run. The first copyCluster() makes the template in it. */
export function nameClusterTemplate(): TempDir {
  const directory = makeTempDir('cluster');
  process.env[VARIABLE] = directory.path;
  return directory;
}

/**
 * Copies a migrated database directory into a data directory: making one costs more than a second of processor time.
 * The real first start is tested in cli/embedded-postgres and test/operations/start.test.ts. Without a test run's
 * folder this does nothing.
 */
export async function copyCluster(dataDir: string): Promise<void> {
  const folder = process.env[VARIABLE];
  if (!folder || !existsSync(folder)) return;
  const template = join(folder, 'data');
  if (!existsSync(template)) await makeTemplate(folder, template);
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  // With their owner, who as root is another user.
  const paths = PARTS.map(name => join(template, name));
  await promisify(execFile)('cp', ['-Rp', ...paths, dataDir]);
}

/** One of the processes that need it first makes it, and the others wait. */
async function makeTemplate(folder: string, template: string): Promise<void> {
  try {
    mkdirSync(join(folder, 'lock'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await waitFor(() => existsSync(template), {
      what: 'the template of clusters',
      timeoutMs: 120_000,
    });
    return;
  }
  const made = join(folder, 'making');
  await mkdir(made, { mode: 0o711 });
  const cluster = await prepareCluster({ dataDir: made });
  await migrateTemplate(cluster);
  await cluster.log.close();
  await rename(made, template);
}

async function migrateTemplate(cluster: Cluster): Promise<void> {
  const { port, started: server } = await startOnFreePort(free => launchPostgres(cluster, free));
  const { password } = cluster;
  const url = `postgres://${DATABASE_USER}:${password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  await migrateDatabase((await prepareRoles(url)).owner);
  const ended = awaitExit(server);
  // Fast shutdown: a start on the copies has nothing to recover.
  server.kill('SIGINT');
  await ended;
}
