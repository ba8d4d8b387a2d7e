import { sql } from 'drizzle-orm';
import { afterAll, beforeAll } from 'vitest';
import { type Database, type Db, openDatabase } from '../../../shared/database/connect.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { waitFor } from '../wait-for.ts';
import { startTestPostgres, type TestPostgres } from './postgres-server.ts';

/** A database of its own for the tests of a file, with all tables and nothing in them, and a folder beside it. */
export function withDatabase(name: string): {
  readonly path: string;
  readonly url: string;
  database(): Database;
} {
  const directory = makeTempDir(name);
  let server: TestPostgres | undefined;
  let database: Database | undefined;
  let url = '';

  beforeAll(async () => {
    server = await startTestPostgres();
    url = await server.createMigrated(name);
    database = openDatabase(url);
  });
  afterAll(async () => {
    await database?.close();
    await server?.stop();
    directory.remove();
  });

  return {
    path: directory.path,
    get url() {
      return url;
    },
    database: () => {
      if (!database) throw new Error('The database is opened before the first test.');
      return database;
    },
  };
}

/** Until a transaction waits for another one's lock. */
export const untilLocked = (db: Db) =>
  waitFor(
    async () => {
      const [row] = await db.execute<{ n: number }>(
        sql`select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`,
      );
      return (row?.n ?? 0) > 0;
    },
    { what: 'a transaction to wait for a lock', intervalMs: 20 },
  );
