import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import {
  chmod,
  type FileHandle,
  lchown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readlink,
  realpath,
  rm,
  rmdir,
  statfs,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { WindlassError } from '../../shared/errors/errors.ts';
import { isDiskFull } from '../../shared/process/disk-errors.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { findIsolation } from './confine.ts';

const CHECK_MS = 500;
const run = promisify(execFile);

/** Confined programs write only to this directory inside the temporary one, so they cannot replace it. */
const INSIDE = 'files';

/**
 * Makes a temporary directory and removes it after use, and the directories of dead workers, which packages for
 * temporary files do not.
 */
export async function withScratch<T>(
  purpose: 'parse' | 'video',
  use: (path: string) => Promise<T>,
): Promise<T> {
  const prefix = `windlass-${purpose}-`;
  await removeOrphans(prefix);
  const directory = await realpath(tmpdir());
  const path = await mkdtemp(join(directory, `${prefix}${process.pid}-`)).catch(throwDiskError);
  try {
    await chmod(path, 0o711);
    const inside = join(path, INSIDE);
    await mkdir(inside, { mode: 0o700 }).catch(throwDiskError);
    await giveToDecoder(inside);
    return await use(inside);
  } finally {
    await removeScratch(path);
  }
}

/** Removes what is in a scratch directory, but for this file. */
export async function emptyScratch(scratch: string, kept: string): Promise<void> {
  for (const name of await readdir(scratch))
    if (name !== kept) await removeAsDecoder(join(scratch, name));
}

interface WriteOptions {
  signal: AbortSignal;
  /** LIMIT_FREE_BYTES. */
  keepFree: number;
  /** Bytes, where they are known: then nothing is written that has no room. */
  size?: number;
}

/** Writes a file in the scratch directory; throws `insufficient_storage` if only the space kept free is left. */
export async function writeScratch(
  path: string,
  bytes: Readable,
  { signal, keepFree, size = 0 }: WriteOptions,
): Promise<void> {
  const full = new AbortController();
  const watch = watchScratch(keepFree, () => full.abort(diskFull()));
  // The pipeline comes after some waits; without a listener an error until then ends the process.
  bytes.on('error', () => {});
  try {
    if ((await freeForScratch(keepFree)) < size) full.abort(diskFull());
    const file = await open(path, 'wx', 0o600);
    try {
      // By its descriptor: a program that may write to the directory could put a link in its place.
      await giveToDecoder(file);
      const stream = file.createWriteStream();
      await pipeline(bytes, stream, { signal: AbortSignal.any([signal, full.signal]) });
    } finally {
      await file.close();
    }
  } catch (error) {
    bytes.destroy();
    throwDiskError(full.signal.aborted ? full.signal.reason : error);
  } finally {
    clearInterval(watch);
  }
}

/** A file in the scratch directory, or a part of one. */
export interface ScratchFile {
  path: string;
  /** Default: all of it. */
  part?: { start: number; bytes: number };
}

/**
 * Stores a file of the scratch directory as an object; returns its size in bytes. Follows no link, because a confined
 * program may have put one to files that only this process may read. `within`: the required directory of a path that
 * such a program named.
 */
export async function storeScratch(
  objects: ObjectStore,
  key: string,
  { path, part, within, signal }: ScratchFile & { within?: string; signal: AbortSignal },
): Promise<number> {
  if (within !== undefined && !path.startsWith(`${within}/`))
    throw new Error('a confined program names a file outside its directory');
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    const opened = process.platform === 'linux' ? await readlink(`/proc/self/fd/${file.fd}`) : path;
    if (!found.isFile() || found.nlink !== 1 || opened !== path)
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
export async function giveToDecoder(given: string | FileHandle): Promise<void> {
  const { user } = await findIsolation();
  if (!user) return;
  if (typeof given === 'string') await lchown(given, user.uid, user.gid);
  else await given.chown(user.uid, user.gid);
}

/** The most that a program may write beside what is kept free; a small disk keeps a twentieth free. */
export async function freeForScratch(keepFree: number): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(tmpdir());
  return bavail * bsize - Math.min(keepFree, (blocks * bsize) / 20);
}

/** Calls back when only the space kept free is left on the scratch disk. Stop it with clearInterval(). */
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
  throw isDiskFull(error) ? diskFull(error) : error;
}

export function diskFull(cause?: unknown): WindlassError {
  return new WindlassError('insufficient_storage', {
    detail: "the worker's disk is full.",
    hint: 'Free some space in its temporary directory, or try again later.',
    cause,
  });
}

async function removeScratch(path: string): Promise<void> {
  for (const directory of [join(path, INSIDE), path]) {
    await removeAsDecoder(directory);
    // Nobody but this process may remove these from the directories that they are in.
    await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}

/**
 * Removes what confined programs wrote, as their user: while root removed it, they could replace a directory by a link
 * to others' files.
 */
async function removeAsDecoder(path: string): Promise<void> {
  const { user } = await findIsolation();
  if (!user) return rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  const env = { PATH: process.env.PATH };
  await run('rm', ['-rf', '--', path], { ...user, cwd: '/', env }).catch(() => {});
}

async function removeOrphans(prefix: string): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (!pid || isAlive(Number(pid))) continue;
    const path = join(tmpdir(), name);
    if (await isOurs(path)) await removeScratch(path).catch(() => {});
  }
}

/** Anybody may make a directory of such a name, and put links in it during its removal. */
async function isOurs(path: string): Promise<boolean> {
  const { user } = await findIsolation();
  const found = await lstat(path).catch(() => undefined);
  const isOwn = found?.uid === process.getuid?.() || found?.uid === user?.uid;
  return found?.isDirectory() === true && isOwn;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
