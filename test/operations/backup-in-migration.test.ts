import { mkdirSync, readdirSync } from 'node:fs';
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
import { waitFor } from '../harness/wait-for.ts';

const server = useStarted(() => startTestPostgres());
const place = makeTempDir('backup_in_migration');
afterAll(() => place.remove());

/** The one after it adds a column first; its last statement waits for whoever holds `audit_pending`. */
const BEFORE = readJournal(MIGRATIONS).find(({ tag }) => tag === '0031_store-marker');

const connect = (url: string) => {
  const sql = postgres(url, { max: 1 });
  onTestFinished(() => sql.end());
  return sql;
};

async function backUp(url: string, name: string, onProgress = (_line: string) => {}) {
  const folder = join(place.path, name);
  mkdirSync(folder);
  const options = { folder, objects: await store(`${name}-objects`), onProgress };
  const { signal } = new AbortController();
  const made = writeBackup({ url, signal, destination: folder, ...options });
  return { folder, made };
}

async function store(name: string) {
  const folder = join(place.path, name);
  mkdirSync(folder);
  return openObjectStore(readConfig({ DATA_DIR: folder }));
}

async function restore(folder: string, name: string) {
  const { signal } = new AbortController();
  const options = { signal, objects: await store(`${name}-restored`), onProgress() {} };
  const url = await server.createDatabase(`${name}_restored`);
  await restoreBackup({ url, folder, ...options });
  return connect(url);
}

test('a backup is refused while a migration is applied in part, and made once it is whole', async () => {
  const url = await server.createDatabase('in_part');
  await migrateDatabase(url, { upTo: BEFORE?.when });
  const [sql, holder] = [connect(url), connect(url)];
  await sql`insert into users (username, administrator) values ('ada', true)`;
  await holder`begin`;
  await holder`insert into audit_pending (action) values ('login')`;
  const said: string[] = [];
  const stop = new AbortController();
  const migrating = migrateDatabase(url, { signal: stop.signal, say: line => said.push(line) });
  await waitFor(() => said.some(line => line.includes('waits for a lock')), {
    what: 'the migration to stand in its middle',
    timeoutMs: 30_000,
  });
  const refuse = async (name: string) => {
    const { folder, made } = await backUp(url, name);
    await expect(made).rejects.toMatchObject({
      message: 'Migration 0032_payload-bytes is applied in part.',
      hint: 'Let `windlass migrate`, or the start of the service, end; where it was cut, run it again.',
    });
    expect(readdirSync(folder).filter(file => file !== 'SHA256SUMS')).toEqual([]);
  };
  await refuse('under-way');
  stop.abort();
  await expect(migrating).rejects.toThrow();
  await holder`rollback`;
  await refuse('cut');
  await migrateDatabase(url);
  const { folder, made } = await backUp(url, 'whole');
  await made;
  const restored = await restore(folder, 'whole');
  expect(await restored`select username from users`).toEqual([{ username: 'ada' }]);
});

test('a migration that begins during a backup is no part of it', async () => {
  const url = await server.createDatabase('begun_later');
  await migrateDatabase(url, { upTo: BEFORE?.when });
  const sql = connect(url);
  await sql`insert into users (username, administrator) values ('ada', true)`;
  let migrating: Promise<void> | undefined;
  const begin = () => {
    migrating ??= migrateDatabase(url);
  };
  const { folder, made } = await backUp(url, 'begun-later', begin);
  const { manifest } = await made;
  await migrating;
  expect(manifest.migration).toEqual({ tag: BEFORE?.tag, when: BEFORE?.when });
  const restored = await restore(folder, 'begun_later');
  expect(await restored`select username from users`).toEqual([{ username: 'ada' }]);
});
