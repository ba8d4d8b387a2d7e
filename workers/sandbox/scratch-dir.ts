import { createWriteStream } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { WindlassError } from '../../shared/errors.ts';

/** Lends a folder of the worker's disk and removes it afterwards, and those of workers that died with theirs. */
export async function withScratch<T>(
  purpose: 'parse' | 'video',
  use: (path: string) => Promise<T>,
): Promise<T> {
  const prefix = `windlass-${purpose}-`;
  await removeLeftovers(prefix);
  const path = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`)).catch(explainFull);
  try {
    return await use(path);
  } finally {
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

/** Writes a file of the scratch folder; `insufficient_storage` where the disk is full. */
export async function writeScratch(
  path: string,
  bytes: Readable,
  signal: AbortSignal,
): Promise<void> {
  await pipeline(bytes, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal }).catch(
    explainFull,
  );
}

function explainFull(error: unknown): never {
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

async function removeLeftovers(prefix: string): Promise<void> {
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
