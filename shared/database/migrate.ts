import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type * as Bullmq from 'bullmq';
import { sql } from 'drizzle-orm';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import pg from 'pg';
import { packageRoot } from '../package-root.ts';
import { requirePackage } from '../require-package.ts';
import { type Database, isDatabaseDown, openDatabase } from './connect.ts';

const MIGRATIONS = fileURLToPath(new URL('migrations', packageRoot));
/** Key of the advisory lock; any number that no version of Windlass changes. */
const LOCK = 7_493_221;

/**
 * Applies the migrations of Windlass and of the queue. An advisory lock makes it safe to run concurrently; drizzle's
 * migrator alone is not (of four at once three failed).
 */
export async function migrateDatabase(url: string): Promise<void> {
  const database = openDatabase(url, { max: 1 });
  try {
    await database.db.execute(sql`select pg_advisory_lock(${LOCK})`);
    await migrate(database.db, { migrationsFolder: MIGRATIONS });
    await migrateBullmq(url);
  } finally {
    await database.close();
  }
}

async function migrateBullmq(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // Without a listener a broken connection would end the process; the query rejects as well.
  client.on('error', () => {});
  await client.connect();
  try {
    await requirePackage<typeof Bullmq>('bullmq').runMigrations(client);
  } finally {
    await client.end();
  }
}

/** Waits until another process has applied the newest migration that this one knows. */
export async function waitForSchema(
  database: Database,
  options: { signal?: AbortSignal; onWait?: (reason: string) => void } = {},
): Promise<void> {
  const newest = newestMigration();
  for (let tries = 0; ; tries++) {
    options.signal?.throwIfAborted();
    const applied = await newestApplied(database).catch((error: unknown) => {
      if (!isDatabaseDown(error)) throw error;
      return 'unreachable' as const;
    });
    if (typeof applied === 'number' && applied >= newest) return;
    if (tries % 20 === 4) {
      options.onWait?.(
        applied === 'unreachable'
          ? 'the database cannot be reached'
          : 'the schema is older than this program: run `windlass migrate`',
      );
    }
    await new Promise(resolve => setTimeout(resolve, 250));
  }
}

async function newestApplied({ db }: Database): Promise<number> {
  const [found] = await db.execute<{ at: string | null }>(
    sql`select to_regclass('drizzle.__drizzle_migrations') as at`,
  );
  if (!found?.at) return 0;
  const [row] = await db.execute<{ at: string | null }>(
    sql`select max(created_at) as at from drizzle.__drizzle_migrations`,
  );
  return Number(row?.at ?? 0);
}

function newestMigration(): number {
  const journal: { entries: { when: number }[] } = JSON.parse(
    readFileSync(`${MIGRATIONS}/meta/_journal.json`, 'utf8'),
  );
  return Math.max(...journal.entries.map(entry => entry.when));
}
