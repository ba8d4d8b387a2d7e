import { afterAll, beforeAll } from 'vitest';
import { makeOwners, type Owner, stopOwner } from '../../embedded/postgres/test-owner.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { makeTempDir } from './temp-dir.ts';

/** A database of its own for the tests of a file, with all tables and nothing in them, and a folder beside it. */
export function withDatabase(name: string): { readonly path: string; database(): Database } {
  const directory = makeTempDir(name);
  let owner: Owner | undefined;
  let database: Database | undefined;

  beforeAll(async () => {
    owner = await makeOwners(directory.path).start({});
    await migrateDatabase(owner.url);
    database = openDatabase(owner.url);
  }, 60_000);
  afterAll(async () => {
    await database?.close();
    if (owner) await stopOwner(owner);
    directory.remove();
  });

  return {
    path: directory.path,
    database: () => {
      if (!database) throw new Error('The database is opened before the first test.');
      return database;
    },
  };
}
