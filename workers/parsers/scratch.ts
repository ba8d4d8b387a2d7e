import { createWriteStream } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { diskFull } from './table/run-child.ts';

const PREFIX = 'windlass-parse-';

/** Lends a folder of the worker's disk and removes it afterwards, and those of workers that died with theirs. */
export async function withScratch<T>(use: (path: string) => Promise<T>): Promise<T> {
  await removeLeftovers();
  const path = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`)).catch(explainFull);
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

async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
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
