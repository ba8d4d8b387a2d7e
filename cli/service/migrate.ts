import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { describeVersion } from '../../shared/database/describe-refusal.ts';
import { createFirstAdministrator } from '../../shared/database/first-administrator.ts';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { requireDirect } from '../../shared/database/pooler.ts';
import { exitWith } from '../../shared/service/lifecycle.ts';
import { type Config, readConfig } from '../../shared/settings/config.ts';
import { CommandError } from '../command-error.ts';
import { explainDatabaseError } from '../explain-database-error.ts';
import { withDatabase } from '../find-database.ts';
import { printLine } from '../output/print-line.ts';
import { printRecord } from '../output/print-records.ts';
import type { CommandContext } from './command-context.ts';

/** `windlass migrate`: migrates the schema and creates the first administrator. */
export async function migrate(
  { environment, life }: CommandContext,
  { json }: { json?: boolean },
): Promise<void> {
  const config = readConfig(environment);
  if (!config.DATABASE_URL && !config.DATA_DIR)
    throw new CommandError('DATABASE_URL is not set.', {
      hint: 'Set it to the database to migrate, or DATA_DIR to the folder of an embedded one.',
    });
  // The one line of standard output is for a program.
  const print = json ? (line: string) => process.stderr.write(`${line}\n`) : printLine;
  const work = (url: string) => prepareDatabase(url, config, life.stopping, print);
  const made = await withDatabase(config, life.stopping, work).catch((error: unknown) => {
    if (life.stopping.aborted)
      exitWith('Stopped before the database was up to date. Migrate again.');
    throw error;
  });
  const sentence = 'The database is up to date.';
  await printRecord({ migrated: true, ...(made && { administrator: made }) }, { sentence, json });
}

/**
 * Applies the migrations and creates the first administrator, whom it returns; a generated password is printed once.
 */
export async function prepareDatabase(
  url: string,
  config: Config,
  signal?: AbortSignal,
  print = printLine,
): Promise<{ username: string; password?: string } | undefined> {
  const { DATABASE_DIRECT_URL: directUrl } = config;
  const isPooled = directUrl !== undefined;
  const server = directUrl ?? url;
  const database = openDatabase(server, { max: 1 });
  try {
    await requireDirect({ ...database, isPooled });
    await checkVersion(database, server)
      .then(() => migrateDatabase(server, { say: print, signal, setsRole: isPooled }))
      .catch((error: unknown) => {
        throw explainDatabaseError(
          error,
          server,
          isPooled ? 'DATABASE_DIRECT_URL' : 'DATABASE_URL',
        );
      });
    const { isMade, madeUp } = await createFirstAdministrator(database, {
      username: config.ADMIN_USERNAME,
      password: config.ADMIN_PASSWORD,
    });
    if (madeUp)
      print(`Administrator: ${config.ADMIN_USERNAME}, password: ${madeUp} (shown only now)`);
    if (!isMade && config.ADMIN_PASSWORD)
      print(
        'ADMIN_PASSWORD is ignored: there are users already. `windlass user password` changes a password, and `windlass admin reset` one that nobody knows.',
      );
    return isMade ? { username: config.ADMIN_USERNAME, password: madeUp } : undefined;
  } finally {
    await database.close();
  }
}

async function checkVersion({ db }: Database, url: string): Promise<void> {
  const [row] = await db.execute<{ major: number }>(
    sql`select current_setting('server_version_num')::int / 10000 as major`,
  );
  const tooOld = describeVersion(row?.major ?? 0, url);
  if (tooOld) throw new CommandError(tooOld.problem, tooOld);
}
