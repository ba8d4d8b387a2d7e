import { sql } from 'drizzle-orm';
import { type Config, readConfig } from '../../shared/config.ts';
import {
  type Database,
  describeOutage,
  isDatabaseDown,
  openDatabase,
  sqlState,
} from '../../shared/database/connect.ts';
import { createFirstAdministrator } from '../../shared/database/first-administrator.ts';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { MigrationError } from '../../shared/database/migrations/session.ts';
import { exitWith } from '../../shared/process-lifecycle.ts';
import { StartError } from '../start-error.ts';
import type { CommandContext } from './command-context.ts';

/** `windlass migrate`: migrates the schema and creates the first administrator. */
export async function migrate({ environment, life }: CommandContext): Promise<void> {
  const config = readConfig(environment);
  if (!config.DATABASE_URL)
    throw new StartError('DATABASE_URL is not set.', {
      hint: 'Set it to the database to migrate.',
    });
  await prepareDatabase(config.DATABASE_URL, config, life.stopping).catch((error: unknown) => {
    // A script that goes on after a success must not take this for one.
    if (life.stopping.aborted)
      exitWith('windlass: Stopped before the database was up to date. Migrate again.');
    throw error;
  });
  process.stdout.write('The database is up to date.\n');
}

/** Applies the migrations and creates the first administrator; a generated password is printed once. */
export async function prepareDatabase(
  url: string,
  config: Config,
  signal?: AbortSignal,
): Promise<void> {
  const database = openDatabase(url, { max: 1 });
  try {
    await checkVersion(database, url)
      .then(() => migrateDatabase(url, { say, signal }))
      .catch((error: unknown) => {
        throw translateError(error, url);
      });
    const password = await createFirstAdministrator(database, {
      username: config.ADMIN_USERNAME,
      password: config.ADMIN_PASSWORD,
    });
    if (password)
      process.stdout.write(
        `Administrator: ${config.ADMIN_USERNAME}, password: ${password} (shown only now)\n`,
      );
  } finally {
    await database.close();
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`);

/** The first major version with `IS JSON`, which checks JSON without changing it. */
const OLDEST = 16;

async function checkVersion({ db }: Database, url: string): Promise<void> {
  const [row] = await db.execute<{ version: string }>(
    sql`select current_setting('server_version_num') as version`,
  );
  const major = Math.floor(Number(row?.version) / 10_000);
  if (major >= OLDEST) return;
  throw new StartError(`The database at ${new URL(url).host} is PostgreSQL ${major}.`, {
    hint: `Windlass needs ${OLDEST} or newer.`,
  });
}

function translateError(error: unknown, url: string): unknown {
  const { host, pathname, username } = new URL(url);
  const name = pathname.slice(1);
  const failure = (message: string, hint: string) =>
    new StartError(message, { hint, cause: error });
  switch (sqlState(error)) {
    case '28P01':
    case '28000':
      return failure(
        `The database at ${host} refuses the password of ${username}.`,
        'Correct DATABASE_URL.',
      );
    case '3D000':
      return failure(
        `There is no database ${name} at ${host}.`,
        'Create it, or correct DATABASE_URL.',
      );
    case '42501':
      return failure(
        `${username} may not make schemas and tables in ${name} at ${host}.`,
        `Let it own the database: ALTER DATABASE "${name}" OWNER TO "${username}".`,
      );
  }
  if (error instanceof MigrationError)
    return failure(error.message, 'What was done is kept. Mend the cause and start it again.');
  if (!isDatabaseDown(error)) return error;
  const outage = describeOutage(error).replace('the database', `the database at ${host}`);
  return failure(
    `${outage[0]?.toUpperCase()}${outage.slice(1)}.`,
    /^53/.test(sqlState(error) ?? '')
      ? 'Make room for it, and start again.'
      : 'Start it, or correct DATABASE_URL.',
  );
}
