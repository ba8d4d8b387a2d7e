import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import postgres from 'postgres';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { MIGRATIONS, readJournal } from '../../shared/database/migrations/migration-files.ts';
import { finderOf } from '../../shared/database/primary.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { CommandError } from '../command-error.ts';
import { listSummed, notWhole, verifySums } from './checksums.ts';
import { endOpenWork } from './end-open-work.ts';
import { type Manifest, objectFile, readManifest, tableFile } from './manifest.ts';

const OBJECT = objectFile('');

interface RestoreOptions {
  url: string;
  objects: ObjectStore;
  folder: string;
  signal: AbortSignal;
  /** Told of progress, many times. */
  onProgress(line: string): void;
}

export interface Restored {
  manifest: Manifest;
  /** Jobs that were open then, and have ended now. */
  ended: number;
}

/**
 * Restores a backup into a database that is empty, and the store. Every byte of the backup is checked before; the rows come in
 * one transaction, after the objects, so that a restore that was cut off is made again.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { url, folder, signal } = options;
  const manifest = await readManifest(folder);
  const { migration } = manifest;
  if (!readJournal(MIGRATIONS).some(({ when }) => when === migration.when))
    throw new CommandError('A newer release made the backup.', {
      hint: `Restore with Windlass ${manifest.release}.`,
    });
  await verify(manifest, options);
  await migrateDatabase(url, { upTo: migration.when, signal });
  const sql = postgres(finderOf(url).url, {
    ...{ max: 1, idle_timeout: 0, max_lifetime: null, onnotice: () => {} },
    connection: { application_name: 'windlass restore', statement_timeout: 0 },
  });
  try {
    await requireEmpty(sql, migration);
    await putObjects(manifest, options);
    const ended = await sql.begin(async tx => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await copyTables(tx, manifest, options);
      return endOpenWork(tx, manifest.taken);
    });
    await migrateDatabase(url, { signal });
    return { manifest, ended: ended as number };
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function verify(
  { tables, objects }: Manifest,
  { folder, signal, onProgress }: RestoreOptions,
): Promise<void> {
  const missing = new Set(tables.map(({ name }) => tableFile(name)));
  let found = 0;
  for await (const name of verifySums(folder)) {
    signal.throwIfAborted();
    if (name.startsWith(OBJECT)) found++;
    else missing.delete(name);
    onProgress(`Checking: ${found} of ${objects} objects`);
  }
  const [first] = missing;
  if (first) throw notWhole(`${first} is not in its list`);
  if (found !== objects) throw notWhole(`of ${objects} objects ${found} are in its list`);
}

async function requireEmpty(sql: postgres.Sql, { when, tag }: Manifest['migration']) {
  const [row] = await sql<{ last: string; full: boolean }[]>`
    select (select max(created_at)::text from drizzle.__drizzle_migrations) as last,
      exists(select from users) or exists(select from projects) or exists(select from jobs) as full`;
  if (row?.last !== String(when))
    throw new CommandError(`The database has later tables than the backup, which is of ${tag}.`, {
      hint: 'Restore into an empty database, which is migrated after it.',
    });
  if (row.full)
    throw new CommandError('The database is not empty.', {
      hint: 'Restore into a new DATA_DIR, or an empty database.',
    });
}

/** Keys are written once: an object that is there comes from a restore that was cut off. */
async function putObjects(
  manifest: Manifest,
  { objects, folder, signal, onProgress }: RestoreOptions,
): Promise<void> {
  let put = 0;
  for await (const name of listSummed(folder)) {
    if (!name.startsWith(OBJECT)) continue;
    signal.throwIfAborted();
    const key = name.slice(OBJECT.length);
    await objects.remove(key);
    await objects.put(key, createReadStream(join(folder, name)), { signal });
    onProgress(`Objects: ${++put} of ${manifest.objects}`);
  }
}

async function copyTables(
  tx: postgres.TransactionSql,
  { tables }: Manifest,
  { folder, signal, onProgress }: RestoreOptions,
): Promise<void> {
  await tx`truncate ${tx(tables.map(({ name }) => name))}`;
  for (const [n, { name, columns }] of tables.entries()) {
    signal.throwIfAborted();
    onProgress(`Tables: ${n} of ${tables.length}`);
    const rows = await tx`copy ${tx(name)} (${tx(columns)}) from stdin`.writable();
    await pipeline(createReadStream(join(folder, tableFile(name))), createGunzip(), rows);
    await continueNumbers(tx, name);
  }
}

/** Of its identity columns: COPY leaves their sequences as they are. */
async function continueNumbers(tx: postgres.TransactionSql, table: string): Promise<void> {
  const columns = await tx<{ name: string }[]>`
    select attname as name from pg_attribute where attrelid = ${table}::regclass and attidentity <> ''`;
  for (const { name } of columns)
    await tx`select setval(pg_get_serial_sequence(${table}, ${name}), max(${tx(name)}))
      from ${tx(table)} having max(${tx(name)}) is not null`;
}
