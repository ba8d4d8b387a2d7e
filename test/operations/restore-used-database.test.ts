import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { restoreBackup } from '../../cli/backup/restore-backup.ts';
import { writeBackup } from '../../cli/backup/write-backup.ts';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { MIGRATIONS, readJournal } from '../../shared/database/migrations/migration-files.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { startTestPostgres } from '../harness/databases/postgres-server.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';

const server = useStarted(() => startTestPostgres());
const place = makeTempDir('restore_used');
afterAll(() => place.remove());

test('a restore onto a used database of an older release refuses, and leaves its tables as they are', async () => {
  const folder = join(place.path, 'backup');
  mkdirSync(folder);
  const objects = await openObjectStore(readConfig({ DATA_DIR: place.path }));
  const options = { folder, objects, signal: new AbortController().signal, onProgress() {} };
  await writeBackup({
    ...options,
    url: await server.createMigrated('newest'),
    destination: folder,
  });
  const url = await server.createDatabase('used');
  await migrateDatabase(url, { upTo: readJournal(MIGRATIONS)[1]?.when });
  const old = postgres(url, { max: 1 });
  onTestFinished(() => old.end());
  await old`insert into users (username, password_hash, administrator) values ('admin', 'x', true)`;
  const applied = () => old`select * from drizzle.__drizzle_migrations order by id`;
  const before = await applied();
  await expect(restoreBackup({ ...options, url })).rejects.toThrow(
    'The database is not empty: it has users, projects or jobs.',
  );
  expect(await applied()).toEqual(before);
});
