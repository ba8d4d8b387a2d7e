import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createGzip } from 'node:zlib';
import type pg from 'pg';
import { to } from 'pg-copy-streams';
import { MIGRATIONS, readJournal } from '../../shared/database/migrations/migration-files.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { readMarker } from '../../shared/installation/store-marker.ts';
import { RELEASE } from '../../shared/process/release.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { auditCommand } from '../audit-command.ts';
import { CommandError } from '../command-error.ts';
import { readSumsOf, SummedFolder } from './checksums.ts';
import { holdDeletions, whileHeld } from './hold-deletions.ts';
import { MANIFEST, type Manifest, objectFile, readManifest, tableFile } from './manifest.ts';
import { describeMissing } from './missing-objects.ts';
import { identifiers, inTransaction, openConnection } from './open-connection.ts';
import { listReferences, listTables } from './tables.ts';

const CONCURRENT_OBJECTS = 4;
/** The keys of the objects that are to be copied, a line each. */
const KEYS = 'objects.txt';

interface BackupOptions {
  url: string;
  objects: ObjectStore;
  /** Empty. */
  folder: string;
  /** Where it will be, for the audit. */
  destination: string;
  /** An older backup, on the same disk: what both have is stored once. */
  since?: string;
  /** Objects that the store has lost are listed, and no reason to give up. */
  withoutMissing?: boolean;
  signal: AbortSignal;
  /** Told of progress, many times. */
  onProgress(line: string): void;
  /** How long the database keeps the lock of a process that is suspended. Default 60. */
  idleSeconds?: number;
}

interface Written {
  manifest: Manifest;
  /** Objects that are files of the older backup. */
  linked: number;
}

/**
 * Copies the tables as they are at one moment, then the objects that they refer to, while the service runs: meanwhile it
 * deletes no object. The manifest comes last, so that a folder with one is whole.
 */
export async function writeBackup(options: BackupOptions): Promise<Written> {
  const { url, folder, signal, since } = options;
  if (since !== undefined) await readManifest(since);
  const client = await openConnection(url, 'windlass backup');
  try {
    if (options.withoutMissing) await requireOwnStore(client, options.objects);
    await holdDeletions(client);
    await auditCommand(client, 'backup', options.destination);
    const files = new SummedFolder(folder, signal);
    const manifest = await inTransaction(client, 'isolation level repeatable read, read only', () =>
      copyTables(client, files, options),
    );
    let linked = 0;
    await whileHeld(client, options, async held => {
      const copied = await copyObjects(files, { ...options, signal: held }, manifest.objects);
      linked = copied.linked;
      manifest.missing = copied.missing.sort();
      manifest.objects -= copied.missing.length;
    });
    if (manifest.missing.length > 0 && !options.withoutMissing)
      throw await describeMissing(client, manifest.missing);
    await files.close();
    await rm(join(folder, KEYS));
    const file = await open(join(folder, MANIFEST), 'wx', 0o600);
    await file.writeFile(`${JSON.stringify(manifest, undefined, 2)}\n`);
    await file.sync().finally(() => file.close());
    return { manifest, linked };
  } finally {
    // With it the lock goes.
    await client.end().catch(() => {});
  }
}

/** In a wrong store all is missing. */
async function requireOwnStore(client: pg.Client, objects: ObjectStore): Promise<void> {
  const { rows } = await client.query<{ id: string }>('select id from installation');
  if ((await readMarker(objects)) !== rows[0]?.id)
    throw new CommandError('The object store is not that of this database.', {
      hint: 'Correct S3_BUCKET, DATA_DIR or DATABASE_URL.',
    });
}

async function copyTables(
  client: pg.Client,
  files: SummedFolder,
  { folder, onProgress, signal }: BackupOptions,
): Promise<Manifest> {
  const { rows } = await client.query<{ taken: Date; migration: string }>(
    'select now() as taken, max(created_at)::text as migration from drizzle.__drizzle_migrations',
  );
  await requireWholeMigrations(client);
  const [at] = rows;
  const migration = readJournal(MIGRATIONS).find(({ when }) => String(when) === at?.migration);
  if (!at || !migration)
    throw new CommandError("The database is not of this program's release.", {
      hint: 'Make the backup with the release that runs, or migrate first.',
    });
  const tables = await listTables(client);
  for (const [n, { name, columns }] of tables.entries()) {
    signal.throwIfAborted();
    onProgress(`Tables: ${n} of ${tables.length}`);
    const copy = `copy ${identifiers([name])} (${identifiers(columns)}) to stdout`;
    await files.write(tableFile(name), client.query(to(copy)), createGzip({ level: 1 }));
  }
  return {
    format: 1,
    release: RELEASE,
    taken: at.taken.toISOString(),
    migration: { tag: migration.tag, when: migration.when },
    tables,
    objects: await listObjects(client, folder),
    missing: [],
  };
}

/**
 * Each statement of a migration commits by itself, so that the snapshot may have some of its columns: a restore, which
 * makes the tables of whole migrations, could not load them.
 */
async function requireWholeMigrations(client: pg.Client): Promise<void> {
  // Databases of old releases have no such table.
  const { rows: tables } = await client.query<{ isThere: boolean }>(
    `select to_regclass('drizzle.migration_progress') is not null as "isThere"`,
  );
  if (!tables[0]?.isThere) return;
  const { rows } = await client.query<{ migration: string }>(
    'select migration from drizzle.migration_progress limit 1',
  );
  const [begun] = rows;
  if (!begun) return;
  const known = readJournal(MIGRATIONS).find(({ when }) => String(when) === begun.migration);
  throw new CommandError(
    `${known ? `Migration ${known.tag}` : 'A migration of a newer release'} is applied in part.`,
    {
      hint: 'Let `windlass migrate`, or the start of the service, end; where it was cut, run it again.',
    },
  );
}

/** Writes down the keys of the objects; how many there are. */
async function listObjects(client: pg.Client, folder: string): Promise<number> {
  const file = await open(join(folder, KEYS), 'wx', 0o600);
  let count = 0;
  try {
    for await (const keys of listReferences(client)) {
      count += keys.length;
      await file.write(keys.map(key => `${key}\n`).join(''));
    }
  } finally {
    await file.close();
  }
  return count;
}

/** Returns how many of them it linked, and which the store lacks. Where that is the end of the backup, it only looks for more. */
async function copyObjects(
  files: SummedFolder,
  { folder, since, withoutMissing = false, objects, onProgress, signal }: BackupOptions,
  count: number,
): Promise<{ linked: number; missing: string[] }> {
  // An object never changes: its name in an older backup says what it holds.
  const older = since === undefined ? undefined : await readSumsOf(since, objectFile(''));
  const linkOlder = async (name: string) => {
    const digest = older?.get(name);
    return since !== undefined && digest !== undefined && files.link(name, since, digest);
  };
  const lines = createInterface({ input: createReadStream(join(folder, KEYS)) });
  const keys = lines[Symbol.asyncIterator]();
  let done = 0;
  let linked = 0;
  const missing: string[] = [];
  let bytes = 0;
  const failed = new AbortController();
  const stopped = AbortSignal.any([signal, failed.signal]);
  const copyOne = async (key: string) => {
    const name = objectFile(key);
    if (await linkOlder(name)) {
      linked++;
      return;
    }
    if (missing.length > 0 && !withoutMissing) {
      if (!(await objects.stat(key))) missing.push(key);
      return;
    }
    const source = await objects.get(key, { signal: stopped }).catch(ifNotThere);
    if (source) bytes += await files.write(name, source);
    else missing.push(key);
  };
  const copySome = async () => {
    for (let next = await keys.next(); !next.done; next = await keys.next()) {
      stopped.throwIfAborted();
      await copyOne(next.value);
      done++;
      onProgress(`Objects: ${done} of ${count}, ${Math.round(bytes / 1e6)} MB`);
    }
  };
  const copying = Array.from({ length: CONCURRENT_OBJECTS }, copySome);
  try {
    await Promise.all(copying);
  } finally {
    // The first failure ends them all, before the caller removes the folder that they write to.
    failed.abort();
    await Promise.allSettled(copying);
    lines.close();
  }
  return { linked, missing };
}

function ifNotThere(error: unknown): undefined {
  if (!(error instanceof WindlassError) || error.code !== 'not_found') throw error;
}
