import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createGzip } from 'node:zlib';
import postgres from 'postgres';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { sqlState } from '../../shared/database/connect.ts';
import { MIGRATIONS, readJournal } from '../../shared/database/migrations/migration-files.ts';
import { finderOf } from '../../shared/database/primary.ts';
import { RELEASE } from '../../shared/release.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { CommandError } from '../command-error.ts';
import { SummedFolder } from './checksums.ts';
import { MANIFEST, type Manifest, objectFile, tableFile } from './manifest.ts';
import { listReferences, listTables } from './tables.ts';

const LOCK_NOT_AVAILABLE = '55P03';
const CONCURRENT_OBJECTS = 4;
/** The keys of the objects that are to be copied, a line each. */
const KEYS = 'objects.txt';

interface BackupOptions {
  url: string;
  objects: ObjectStore;
  /** Empty. */
  folder: string;
  signal: AbortSignal;
  /** Told of progress, many times. */
  onProgress(line: string): void;
}

/**
 * Copies the tables as they are at one moment, then the objects that they refer to, while the service runs: meanwhile it
 * deletes no object. The manifest comes last, so that a folder with one is whole.
 */
export async function writeBackup(options: BackupOptions): Promise<Manifest> {
  const { url, folder } = options;
  const sql = postgres(finderOf(url).url, {
    ...{ max: 2, idle_timeout: 0, max_lifetime: null, onnotice: () => {} },
    // Not `windlass-…`, whose long transactions the dispatcher ends.
    connection: { application_name: 'windlass backup', statement_timeout: 0 },
  });
  const hold = await sql.reserve();
  try {
    await holdDeletions(hold);
    const files = new SummedFolder(folder);
    const manifest = await copyTables(sql, files, options);
    await copyObjects(files, options, manifest.objects);
    await files.close();
    await rm(join(folder, KEYS));
    const file = await open(join(folder, MANIFEST), 'wx', 0o600);
    await file.writeFile(`${JSON.stringify(manifest, undefined, 2)}\n`);
    await file.sync().finally(() => file.close());
    return manifest;
  } finally {
    hold.release();
    await sql.end({ timeout: 5 });
  }
}

/** Waits for the statements that ask for the lock now and then. */
async function holdDeletions(sql: postgres.ReservedSql): Promise<void> {
  await sql`set lock_timeout = '5s'`;
  try {
    await sql`select pg_advisory_lock(${ADVISORY_LOCKS.deletions})`;
  } catch (cause) {
    if (sqlState(cause) !== LOCK_NOT_AVAILABLE) throw cause;
    throw new CommandError('Another backup of this database is under way.', {
      hint: 'Wait for its end.',
      cause,
    });
  }
}

async function copyTables(
  sql: postgres.Sql,
  files: SummedFolder,
  { folder, onProgress, signal }: BackupOptions,
): Promise<Manifest> {
  return sql.begin('isolation level repeatable read read only', async tx => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    const [at] = await tx<{ taken: Date; migration: string }[]>`
      select now() as taken, max(created_at)::text as migration from drizzle.__drizzle_migrations`;
    const migration = readJournal(MIGRATIONS).find(({ when }) => String(when) === at?.migration);
    if (!at || !migration)
      throw new CommandError("The database is not of this program's release.", {
        hint: 'Make the backup with the release that runs, or migrate first.',
      });
    const tables = await listTables(tx);
    for (const [n, { name, columns }] of tables.entries()) {
      signal.throwIfAborted();
      onProgress(`Tables: ${n} of ${tables.length}`);
      const rows = await tx`copy ${tx(name)} (${tx(columns)}) to stdout`.readable();
      await files.write(tableFile(name), rows, createGzip({ level: 1 }));
    }
    const keys = await open(join(folder, KEYS), 'wx', 0o600);
    let objects = 0;
    for await (const found of listReferences(tx)) {
      objects += found.length;
      await keys.write(found.map(({ object }) => `${object}\n`).join(''));
    }
    await keys.close();
    return {
      ...{ format: 1 as const, release: RELEASE, taken: at.taken.toISOString() },
      migration: { tag: migration.tag, when: migration.when },
      ...{ tables, objects },
    };
  }) as Promise<Manifest>;
}

async function copyObjects(
  files: SummedFolder,
  { folder, objects, onProgress, signal }: BackupOptions,
  count: number,
): Promise<void> {
  const lines = createInterface({ input: createReadStream(join(folder, KEYS)) });
  const keys = lines[Symbol.asyncIterator]();
  let copied = 0;
  let bytes = 0;
  const copySome = async () => {
    for (let next = await keys.next(); !next.done; next = await keys.next()) {
      signal.throwIfAborted();
      bytes += await files.write(objectFile(next.value), await objects.get(next.value, { signal }));
      copied++;
      onProgress(`Objects: ${copied} of ${count}, ${Math.round(bytes / 1e6)} MB`);
    }
  };
  // The first failure ends them all.
  await Promise.all(Array.from({ length: CONCURRENT_OBJECTS }, copySome)).finally(() =>
    lines.close(),
  );
}
