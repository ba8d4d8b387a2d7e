import { execFile } from 'node:child_process';
import { constants, createWriteStream } from 'node:fs';
import { chown, mkdtemp, open, readdir, rm, rmdir, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { findIsolation } from './confine.ts';

const CHECK_MS = 500;
const run = promisify(execFile);

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
    await giveToDecoder(path);
    return await use(path);
  } finally {
    await removeScratch(path);
  }
}

interface WriteOptions {
  signal: AbortSignal;
  /** LIMIT_FREE_BYTES. */
  keepFree: number;
  /** Bytes, where they are known: then nothing is written that has no room. */
  size?: number;
}

/** Writes a file in the scratch folder; throws `insufficient_storage` if the disk is full, but for what is kept free. */
export async function writeScratch(
  path: string,
  bytes: Readable,
  { signal, keepFree, size = 0 }: WriteOptions,
): Promise<void> {
  const full = new AbortController();
  const watch = watchScratch(keepFree, () => full.abort(diskFull()));
  try {
    if ((await freeForScratch(keepFree)) < size) full.abort(diskFull());
    const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
    await pipeline(bytes, file, { signal: AbortSignal.any([signal, full.signal]) });
  } catch (error) {
    throwDiskError(full.signal.aborted ? full.signal.reason : error);
  } finally {
    clearInterval(watch);
  }
  await giveToDecoder(path);
}

/** A file in the scratch folder, or a part of one. */
export interface ScratchFile {
  path: string;
  /** Default: all of it. */
  part?: { start: number; bytes: number };
}

/**
 * Stores a file of the scratch folder as an object; returns its size in bytes. A confined program made it, so that it may
 * be a link to a file that only this process may read: links are not followed.
 */
export async function storeScratch(
  objects: ObjectStore,
  key: string,
  { path, part, signal }: ScratchFile & { signal: AbortSignal },
): Promise<number> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1)
      throw new Error('a confined program left something else than a file');
    const { start, bytes: size } = part ?? { start: 0, bytes: found.size };
    const end = start + size - 1;
    const bytes = file.createReadStream({ autoClose: false, start, ...(part && { end }) });
    return await objects.put(key, bytes, { size, signal });
  } finally {
    await file.close();
  }
}

/** Programs that run as another user read and write there. */
export async function giveToDecoder(path: string): Promise<void> {
  const { user } = await findIsolation();
  if (user) await chown(path, user.uid, user.gid);
}

/** The most that a program may write beside what is kept free: of a small disk, a twentieth of it. */
export async function freeForScratch(keepFree: number): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(tmpdir());
  return bavail * bsize - Math.min(keepFree, (blocks * bsize) / 20);
}

/** Calls back when the disk of the scratch folders has no more space than is kept free. Stop it with clearInterval(). */
export function watchScratch(keepFree: number, onFull: () => void): NodeJS.Timeout {
  return setInterval(() => {
    void freeForScratch(keepFree).then(
      free => {
        if (free < 0) onFull();
      },
      () => {},
    );
  }, CHECK_MS);
}

function throwDiskError(error: unknown): never {
  const { code } = error as NodeJS.ErrnoException;
  throw code === 'ENOSPC' || code === 'EDQUOT' ? diskFull(error) : error;
}

export function diskFull(cause?: unknown): WindlassError {
  return new WindlassError('insufficient_storage', {
    detail: "Insufficient storage: the worker's disk is full.",
    hint: 'Free some space in its temporary folder, or try again later.',
    cause,
  });
}

/**
 * Removes a folder with what confined programs wrote, as their user: while root removed it, who may write there could put a
 * link to files of others in the place of a folder.
 */
async function removeScratch(path: string): Promise<void> {
  const { user } = await findIsolation();
  if (!user) return rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  // It may not remove the folder itself from every folder of temporary files.
  const env = { PATH: process.env.PATH };
  await run('rm', ['-rf', '--', path], { ...user, cwd: '/', env }).catch(() => {});
  await rmdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

async function removeOrphans(prefix: string): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (pid && !isAlive(Number(pid))) await removeScratch(join(tmpdir(), name)).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
