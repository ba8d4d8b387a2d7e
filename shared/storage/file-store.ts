import { createReadStream } from 'node:fs';
import {
  access,
  constants,
  mkdir,
  open,
  opendir,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  statfs,
} from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { WindlassError } from '../errors.ts';
import { newId } from '../ids.ts';
import { assertFreeSpace } from './free-space.ts';
import {
  assertKey,
  type GetOptions,
  type ObjectSource,
  type ObjectStore,
  type PutOptions,
  type StoredObject,
} from './object-store.ts';
import { writeAll } from './write-all.ts';

/**
 * Objects as files in one folder: `objects/` by key, `incoming/` for those that are being written. What would leave less
 * than `keepFree` bytes (LIMIT_FREE_BYTES) free on the disk is refused; what did so beside others is removed again.
 */
export class FileStore implements ObjectStore {
  readonly #objects: string;
  readonly #incoming: string;
  readonly #keepFree: number;

  constructor(root: string, { keepFree = 0 }: { keepFree?: number } = {}) {
    this.#objects = join(root, 'objects');
    this.#incoming = join(root, 'incoming');
    this.#keepFree = keepFree;
  }

  async put(key: string, bytes: ObjectSource, options: PutOptions = {}): Promise<number> {
    const path = this.#path(key);
    const source = Buffer.isBuffer(bytes) ? [bytes] : bytes;
    // Without a listener, the error of a source that is destroyed while nothing reads it would end the process.
    if (!Array.isArray(source)) source.on('error', ignore);
    let at = join(this.#incoming, newId());
    const checkSpace = (added = 0) => assertFreeSpace(this, { added, limit: this.#keepFree });
    try {
      await checkSpace(options.size ?? sizeOf(bytes));
      await mkdir(this.#incoming, { recursive: true, mode: 0o700 });
      // Opened here: a stream that opens its file itself may do so after the cleanup below removed it.
      const file = await open(at, 'wx', 0o600);
      try {
        const size = await writeAll(file, source, { ...options, checkSpace });
        await checkSpace();
        await renameInto(at, path);
        at = path;
        // After the rename, so that one journal commit serves both. Nobody knows the key until this returns.
        await file.sync();
        await syncDirectories(dirname(path), this.#objects);
        return size;
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!Array.isArray(source)) source.destroy();
      await rm(at, { force: true });
      throw translateDiskFull(error);
    }
  }

  async get(key: string, { range, signal }: GetOptions = {}): Promise<Readable> {
    const file = await open(this.#path(key)).catch(rethrowMissing);
    return createReadStream('', { fd: file, ...range, highWaterMark: 1 << 18, signal });
  }

  async stat(key: string): Promise<StoredObject | undefined> {
    try {
      const found = await stat(this.#path(key));
      // A folder is a prefix of other keys.
      return found.isFile() ? { key, size: found.size, modified: found.mtime } : undefined;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async remove(key: string): Promise<void> {
    const path = this.#path(key);
    await rm(path, { force: true });
    await this.#removeEmptyFolders(dirname(path));
  }

  /** Removes this folder and its parents as far as they are empty. A put that needs one creates it again. */
  async #removeEmptyFolders(folder: string): Promise<void> {
    for (let path = folder; path !== this.#objects; path = dirname(path)) {
      const isGone = await rmdir(path).then(
        () => true,
        (error: unknown) => isMissing(error),
      );
      if (!isGone) return;
    }
  }

  async *list(prefix: string): AsyncIterable<StoredObject> {
    const folder = prefix.endsWith('/')
      ? join(this.#objects, prefix)
      : dirname(join(this.#objects, prefix || 'x'));
    for await (const path of walk(folder)) {
      const key = relative(this.#objects, path).split(sep).join('/');
      if (!key.startsWith(prefix)) continue;
      const found = await this.stat(key);
      if (found) yield found;
    }
  }

  async removeAbandonedWrites(before: Date): Promise<void> {
    const names = await readdir(this.#incoming).catch(noneIfMissing);
    for (const name of names) {
      const path = join(this.#incoming, name);
      const found = await stat(path).catch(() => undefined);
      if (found && found.mtime < before) await rm(path, { force: true });
    }
  }

  async freeBytes(): Promise<number> {
    await mkdir(this.#objects, { recursive: true, mode: 0o700 });
    // Without what is reserved for root.
    const { bavail, bsize } = await statfs(this.#objects);
    return bavail * bsize;
  }

  async check(): Promise<void> {
    try {
      await mkdir(this.#objects, { recursive: true, mode: 0o700 });
      await access(this.#objects, constants.W_OK);
    } catch (cause) {
      throw new WindlassError('unavailable', {
        detail: 'The object store cannot be written.',
        cause,
      });
    }
  }

  #path(key: string): string {
    assertKey(key);
    return join(this.#objects, key);
  }
}

const ignore = () => {};

/** 0 for a stream, whose length is unknown. */
function sizeOf(source: ObjectSource): number {
  if (Buffer.isBuffer(source)) return source.length;
  return Array.isArray(source) ? source.reduce((sum, { length }) => sum + length, 0) : 0;
}

/** Every file below a folder. A folder that is removed meanwhile counts as empty. */
async function* walk(folder: string): AsyncGenerator<string> {
  const entries = await opendir(folder).catch(noneIfMissing);
  for await (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile()) yield path;
  }
}

/** Renames a file and creates the target's folder; tries again where another process removed that as empty. */
async function renameInto(partial: string, path: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      if (tries > 1) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return await rename(partial, path);
    } catch (error) {
      if (!isMissing(error) || tries === 100) throw error;
    }
  }
}

/** A rename is durable once its directory is synced; a new directory once its parent is, whichever process created it. */
async function syncDirectories(from: string, upTo: string): Promise<void> {
  const paths: string[] = [];
  for (let path = from; path.length >= upTo.length; path = dirname(path)) paths.push(path);
  await Promise.all(paths.map(syncDirectory));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

function noneIfMissing(error: unknown): never[] {
  if (isMissing(error)) return [];
  throw error;
}

function rethrowMissing(error: unknown): never {
  if (isMissing(error))
    throw new WindlassError('not_found', { detail: 'There is no such object.', cause: error });
  throw error;
}

function translateDiskFull(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  return new WindlassError('insufficient_storage', {
    detail: 'The disk of the object store is full.',
    hint: 'Free some space or ask the administrator to.',
    cause: error,
  });
}
