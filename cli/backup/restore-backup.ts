import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, gunzipSync } from 'node:zlib';
import { getTableName } from 'drizzle-orm';
import type pg from 'pg';
import { from } from 'pg-copy-streams';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { MIGRATIONS, readJournal } from '../../shared/database/migrations/migration-files.ts';
import { grantRights } from '../../shared/database/rights.ts';
import { installation } from '../../shared/database/schema.ts';
import { listObjects, OF_ANOTHER, readMarker } from '../../shared/installation/store-marker.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { CommandError } from '../command-error.ts';
import { listSummed, notWhole, verifySums } from './checksums.ts';
import { endOpenWork } from './end-open-work.ts';
import { type Manifest, objectFile, readManifest, tableFile } from './manifest.ts';
import { identifiers, inTransaction, openConnection } from './open-connection.ts';

const OBJECT = objectFile('');

interface RestoreOptions {
  url: string;
  objects: ObjectStore;
  folder: string;
  signal: AbortSignal;
  /** Told of progress, many times. */
  onProgress(line: string): void;
}

interface Restored {
  manifest: Manifest;
  /** Jobs that were open then, and have ended now. */
  ended: number;
  /** Objects of the store that are not in the backup. */
  others: number;
  /** A newer release restored it: its tables are still those of the release that made the backup. */
  isOlder: boolean;
}

/**
 * Restores a backup into an empty database and the store. Every byte of it is verified first. The rows come last, in
 * one transaction, so that an interrupted restore can be repeated. The next start migrates the tables to its release.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { url, folder, signal } = options;
  const manifest = await readManifest(folder);
  const { migration } = manifest;
  const known = readJournal(MIGRATIONS);
  if (!known.some(({ when }) => when === migration.when))
    throw new CommandError('A newer release made the backup.', {
      hint: `Restore with Windlass ${manifest.release}.`,
    });
  const isOlder = known.at(-1)?.when !== migration.when;
  await verify(manifest, options);
  const others = await requireOwnStore(options);
  const client = await openConnection(url, 'windlass restore');
  try {
    // Before it is migrated, which cannot be undone: the programs of an older release may still use it.
    await requireNoRows(client);
    await migrateDatabase(url, { upTo: migration.when, signal });
    await requireEmpty(client, migration);
    await putObjects(manifest, options);
    const ended = await inTransaction(client, '', async () => {
      // A service that began meanwhile waits, or has accepted something.
      await client.query('lock table users, projects, jobs in access exclusive mode');
      await requireEmpty(client, migration);
      await copyTables(client, manifest, options);
      await recordRestore(client, manifest);
      await forgetMark(client, manifest);
      // Programs with roles of their own wait for their rights. Those of older tables come with the migration.
      if (!isOlder) await grantRights(client);
      return endOpenWork(client, manifest.taken);
    });
    return { manifest, ended, others, isOlder };
  } finally {
    await client.end().catch(() => {});
  }
}

async function verify(
  { tables, objects }: Manifest,
  { folder, signal, onProgress }: RestoreOptions,
): Promise<void> {
  const missing = new Set(tables.map(({ name }) => tableFile(name)));
  let found = 0;
  for await (const name of verifySums(folder, signal)) {
    signal.throwIfAborted();
    if (name.startsWith(OBJECT)) found++;
    else missing.delete(name);
    onProgress(`Checking: ${found} of ${objects} objects`);
  }
  const [first] = missing;
  if (first) throw notWhole(`${first} is not in its list`);
  if (found !== objects) throw notWhole(`of ${objects} objects ${found} are in its list`);
}

/** Before anything is put where another installation would remove it. How many objects a store of this one has besides. */
async function requireOwnStore({ folder, objects }: RestoreOptions): Promise<number> {
  // Makes a bucket that is not there.
  await objects.check();
  const marker = await readMarker(objects);
  if (marker === undefined) {
    await requireKnownObjects(folder, objects);
    return 0;
  }
  const own = await readFile(join(folder, tableFile(getTableName(installation))));
  const [id] = gunzipSync(own)
    .toString()
    .split(/[\t\n]/);
  if (id !== marker) throw new CommandError(OF_ANOTHER.problem, OF_ANOTHER);
  return countOthers(folder, objects);
}

/** A store without a marker may hold what an interrupted restore has put there, and nothing else. */
async function requireKnownObjects(folder: string, objects: ObjectStore) {
  let known: Set<string> | undefined;
  for await (const { key } of listObjects(objects)) {
    known ??= await readObjectNames(folder);
    if (!known.has(objectFile(key)))
      throw new CommandError('The object store holds objects that are not in the backup.', {
        hint: 'Correct S3_BUCKET or DATA_DIR: what no row refers to would be removed. If nobody needs those objects, remove them.',
      });
  }
}

/** What was stored after the backup: no row will refer to it. */
async function countOthers(folder: string, objects: ObjectStore): Promise<number> {
  const known = await readObjectNames(folder);
  let others = 0;
  for await (const { key } of listObjects(objects)) if (!known.has(objectFile(key))) others++;
  return others;
}

async function readObjectNames(folder: string): Promise<Set<string>> {
  const names = new Set<string>();
  for await (const name of listSummed(folder)) if (name.startsWith(OBJECT)) names.add(name);
  return names;
}

async function requireEmpty(client: pg.Client, { when, tag }: Manifest['migration']) {
  const { rows } = await client.query<{ last: string }>(
    'select max(created_at)::text as last from drizzle.__drizzle_migrations',
  );
  if (rows[0]?.last !== String(when))
    throw new CommandError(`The database has later tables than the backup, which is of ${tag}.`, {
      hint: 'Restore into an empty database, which is migrated after it.',
    });
  await requireNoRows(client);
}

/** The database may have tables of any release, or none. */
async function requireNoRows(client: pg.Client) {
  for (const table of ['users', 'projects', 'jobs']) {
    const { rows } = await client.query<{ isThere: boolean }>(
      `select to_regclass('${table}') is not null as "isThere"`,
    );
    if (!rows[0]?.isThere) continue;
    const { rowCount } = await client.query(`select from ${table} limit 1`);
    if (rowCount)
      throw new CommandError('The database is not empty: it has users, projects or jobs.', {
        hint: 'Restore into a new DATA_DIR, or a database that was not even migrated.',
      });
  }
}

/** Keys are written once: an existing object comes from an interrupted restore. */
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
  client: pg.Client,
  { tables }: Manifest,
  { folder, signal, onProgress }: RestoreOptions,
): Promise<void> {
  await client.query(`truncate ${identifiers(tables.map(({ name }) => name))}`);
  for (const [n, { name, columns }] of tables.entries()) {
    signal.throwIfAborted();
    onProgress(`Tables: ${n} of ${tables.length}`);
    const copy = `copy ${identifiers([name])} (${identifiers(columns)}) from stdin`;
    const file = createReadStream(join(folder, tableFile(name)));
    await pipeline(file, createGunzip(), client.query(from(copy)), { signal });
    await continueNumbers(client, name);
  }
}

/** The store is another one now. An older release does not remember that one was marked. */
async function forgetMark(client: pg.Client, { tables }: Manifest): Promise<void> {
  const own = tables.find(({ name }) => name === getTableName(installation));
  if (own?.columns.includes('store_marked'))
    await client.query('update installation set store_marked = null');
}

/** Readers of the audit see where an older state begins. */
async function recordRestore(client: pg.Client, { taken }: Manifest): Promise<void> {
  await client.query("insert into audit_pending (action, target) values ('restore', $1)", [taken]);
}

/** Continues the sequences of its identity columns, which COPY leaves as they are. */
async function continueNumbers(client: pg.Client, table: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attidentity <> ''`,
    [table],
  );
  for (const { name } of rows) {
    const last = `max(${identifiers([name])})`;
    await client.query(
      `select setval(pg_get_serial_sequence($1, $2), ${last}) from ${identifiers([table])} having ${last} is not null`,
      [table, name],
    );
  }
}
