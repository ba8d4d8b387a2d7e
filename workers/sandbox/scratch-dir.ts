import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { WindlassError } from '../../shared/errors.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';

/**
 * Creates a temporary folder and removes it after use. Also removes the folders of workers that have died, which packages
 * for temporary files do not.
 */
export async function withScratch<T>(
  purpose: 'parse' | 'video',
  use: (path: string) => Promise<T>,
): Promise<T> {
  const prefix = `windlass-${purpose}-`;
  await removeOrphans(prefix);
  const path = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`)).catch(throwDiskError);
  try {
    return await use(path);
  } finally {
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

/** Writes a file in the scratch folder; throws `insufficient_storage` if the disk is full. */
export async function writeScratch(
  path: string,
  bytes: Readable,
  signal: AbortSignal,
): Promise<void> {
  await pipeline(bytes, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal }).catch(
    throwDiskError,
  );
}

/** Stores a file of the scratch folder as an object; returns its size in bytes. */
export async function storeScratch(
  objects: ObjectStore,
  key: string,
  { path, signal }: { path: string; signal: AbortSignal },
): Promise<number> {
  const { size } = await stat(path);
  return objects.put(key, createReadStream(path), { size, signal });
}

function throwDiskError(error: unknown): never {
  const { code } = error as NodeJS.ErrnoException;
  throw code === 'ENOSPC' || code === 'EDQUOT' ? diskFull(error) : error;
}

export function diskFull(cause: unknown): WindlassError {
  return new WindlassError('insufficient_storage', {
    detail: "Insufficient storage: the worker's disk is full.",
    hint: 'Free some space in its temporary folder, or try again later.',
    cause,
  });
}

async function removeOrphans(prefix: string): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (pid && !isAlive(Number(pid)))
      await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
