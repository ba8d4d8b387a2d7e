import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { prepareCluster } from '../../cli/embedded-postgres/cluster.ts';
import { makeTempDir, type TempDir } from './temp-dir.ts';

/** Names the template for the processes of the tests. */
const VARIABLE = 'WINDLASS_TEST_CLUSTER';
const PARTS = ['postgres', 'postgres.password'];

/**
 * Makes a database directory once for a whole test run, as a first start makes it. Making one costs more than half a second
 * of processor time; that a start makes it is tested in cli/postgres and test/operations/start.test.ts.
 */
export async function makeClusterTemplate(): Promise<TempDir> {
  const directory = makeTempDir('cluster');
  const { log } = await prepareCluster({ dataDir: directory.path });
  await log.close();
  process.env[VARIABLE] = directory.path;
  return directory;
}

/** Copies the template into a new data directory. Where there is none, nothing is done: the first start makes one. */
export async function copyCluster(dataDir: string): Promise<void> {
  const template = process.env[VARIABLE];
  if (!template || !existsSync(template)) return;
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  // With their owner, who as root is another user.
  const paths = PARTS.map(name => join(template, name));
  await promisify(execFile)('cp', ['-Rp', ...paths, dataDir]);
}
