import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase } from '../shared/database/connect.ts';
import { withScram } from '../shared/database/host-urls.ts';
import { createLog } from '../shared/process/log.ts';
import type { Config } from '../shared/settings/config.ts';
import { CommandError, ifMissing } from './command-error.ts';
import { findDataDir } from './data-dir/find-data-dir.ts';
import { DataDirInUse, isDataDirInUse } from './data-dir/lock.ts';
import { DATABASE_NAME, DATABASE_USER } from './embedded-postgres/cluster.ts';
import { startPostgres } from './embedded-postgres/postgres.ts';
import { prepareRoles } from './embedded-postgres/roles.ts';
import { explainDatabaseError } from './explain-database-error.ts';

/**
 * Does work with the database of the service, as the owner of its tables: the one at DATABASE_URL, or the embedded one of
 * DATA_DIR, which is started where it does not run. Throws CommandError where there is none.
 */
export async function withDatabase<T>(
  config: Config,
  signal: AbortSignal,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const { DATABASE_URL: url } = config;
  if (url)
    return work(url).catch((error: unknown) => {
      throw explainDatabaseError(error, url, 'DATABASE_URL');
    });
  const dataDir = findDataDir(config);
  const read = async (name: string) =>
    (await readFile(join(dataDir, name), 'utf8').catch(ifMissing(''))).trim();
  const [port, password] = [await read('postgres.port'), await read('postgres.password')];
  if (!port || !password)
    throw new CommandError(`There is no database in ${dataDir}.`, {
      hint: 'Set DATA_DIR or DATABASE_URL to that of the service.',
    });
  const running = `postgres://${DATABASE_USER}:${password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  // Where no service runs, whoever listens on its port is another one.
  if ((await isDataDirInUse(dataDir)) && (await answers(withScram(running))))
    return work((await prepareRoles(running)).owner);
  const log = createLog({ level: config.LOG_LEVEL, name: 'windlass', secrets: [] });
  const postgres = await startPostgres({ dataDir, log, signal }).catch((cause: unknown) => {
    if (!(cause instanceof DataDirInUse)) throw cause;
    throw new CommandError(`The database of the service that runs on ${dataDir} does not answer.`, {
      hint: 'It may be starting. Try again in a minute.',
      cause,
    });
  });
  try {
    return await work((await prepareRoles(postgres.url)).owner);
  } finally {
    await postgres.stop();
  }
}

/** Like withDatabase(), for work that needs a connection of its own, for locks and long statements: not through a pooler. */
export async function withDirectDatabase<T>(
  config: Config,
  signal: AbortSignal,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const { DATABASE_URL, DATABASE_DIRECT_URL: url } = config;
  if (!DATABASE_URL || !url) return withDatabase(config, signal, work);
  return work(url).catch((error: unknown) => {
    throw explainDatabaseError(error, url, 'DATABASE_DIRECT_URL');
  });
}

async function answers(url: string): Promise<boolean> {
  const database = openDatabase(url, { max: 1 });
  try {
    await database.sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await database.close();
  }
}
