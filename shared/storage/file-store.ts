import { createReadStream } from 'node:fs';
import {
  access,
  constants,
  type FileHandle,
  lstat,
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
import { basename, dirname, join, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { newId } from '../ids.ts';
import { Beneath } from './beneath.ts';
import { isRefused, translateCheckError, translateFileError } from './file-errors.ts';
import { assertFreeSpace } from './free-space.ts';
import {
  assertKey,
  type GetOptions,
  MissingObject,
  type ObjectSource,
  type ObjectStore,
  type PutOptions,
  type StoredObject,
} from './object-store.ts';
import { OpenFiles } from './open-files.ts';
import { isSharedFolder, OWN_MODES, SHARED_MODES } from './shared-folder.ts';
import { syncDirectory } from './sync-directory.ts';
import { writeAll } from './write-all.ts';

/**
 * Objects as files in one folder: `objects/` by key, `incoming/` while they are written. Nothing may leave less than
 * `keepFree` bytes (LIMIT_FREE_BYTES) on the disk; concurrent writes are checked again at their end. A shared folder's
 * group reads and removes objects: see the umask in open.ts.
 */
export class FileStore implements ObjectStore {
  readonly #objects: string;
  readonly #incoming: string;
  readonly #keepFree: number;
  readonly #modes: typeof OWN_MODES;
  readonly #beneath: Beneath | undefined;
  readonly #openFiles = new OpenFiles();

  constructor(root: string, { keepFree = 0 }: { keepFree?: number } = {}) {
    this.#objects = join(root, 'objects');
    this.#incoming = join(root, 'incoming');
    this.#keepFree = keepFree;
    this.#modes = isSharedFolder(root) ? SHARED_MODES : OWN_MODES;
    if (this.#modes === SHARED_MODES) this.#beneath = new Beneath(this.#objects);
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
      await this.#make(this.#incoming);
      // Opened here: a stream that opens its file itself may do so after the cleanup below removed it.
      const file = await open(at, 'wx', this.#modes.file);
      try {
        const size = await writeAll(file, source, { ...options, checkSpace });
        await checkSpace();
        await this.#inFolder(path, { make: true }, inside => rename(at, inside));
        at = path;
        // After the rename, so that one journal commit serves both. Nobody knows the key until this returns.
        await file.sync();
        await syncDirectories(dirname(path), this.#objects);
        return size;
      } finally {
        await file.close();
      }
    } catch (error) {
      const isOfSource = !Array.isArray(source) && source.errored === error;
      if (!Array.isArray(source)) source.destroy();
      // What a store leaves that is read-only by now is removed with abandoned writes or orphaned objects.
      await this.#remove(at).catch(ignore);
      throw isOfSource ? error : translateFileError(error);
    }
  }

  async get(key: string, { range, signal }: GetOptions = {}): Promise<Readable> {
    const file = await this.#open(key);
    const bytes = createReadStream('', { fd: file, ...range, highWaterMark: 1 << 18, signal });
    const destroy = bytes.destroy.bind(bytes);
    // Not in _destroy(): see S3Body.
    bytes.destroy = error => destroy(error && (translateFileError(error) as Error));
    // An abort may come before there is a reader, which learns of it anyway: without a listener it would end the
    // process.
    return bytes.on('error', ignore);
  }

  read(key: string, into: Buffer, start: number): Promise<void> {
    return this.#openFiles.use(
      key,
      () => this.#open(key),
      async file => {
        for (let at = 0; at < into.length; ) {
          const length = into.length - at;
          const { bytesRead } = await file.read(into, at, length, start + at).catch(rethrow);
          if (bytesRead === 0) throw new Error(`the object ${key} ends too early`);
          at += bytesRead;
        }
      },
    );
  }

  #open(key: string): Promise<FileHandle> {
    const read = (path: string) => (this.#beneath ? this.#beneath.openFile(path) : open(path));
    return this.#inFolder(this.#path(key), {}, read).catch(async (error: unknown) => {
      // Where the whole folder is not refused, waiting does not mend the object.
      if (!isRefused(error)) rethrowMissing(error);
      await this.check();
      throw error;
    });
  }

  async stat(key: string): Promise<StoredObject | undefined> {
    try {
      const opened = await this.#openFiles.useOpen(key, file => file.stat());
      if (opened?.nlink) return { key, size: opened.size, modified: opened.mtime };
      if (opened) this.#openFiles.forget(key);
      const look = this.#beneath ? lstat : stat;
      const found = await this.#inFolder(this.#path(key), {}, inside => look(inside));
      // A folder is a prefix of other keys.
      return found.isFile() ? { key, size: found.size, modified: found.mtime } : undefined;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw translateFileError(error);
    }
  }

  async remove(key: string): Promise<void> {
    const path = this.#path(key);
    this.#openFiles.forget(key);
    await this.#remove(path);
    await this.#removeEmptyFolders(dirname(path));
  }

  async #remove(path: string): Promise<void> {
    await this.#inFolder(path, {}, inside => rm(inside, { force: true })).catch(ignoreMissing);
  }

  /** Removes this folder and its parents as far as they are empty. A put that needs one creates it again. */
  async #removeEmptyFolders(folder: string): Promise<void> {
    for (let path = folder; path !== this.#objects; path = dirname(path)) {
      const isGone = await this.#inFolder(path, {}, inside => rmdir(inside)).then(
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
      if (found && found.mtime < before) await rm(path, { force: true }).catch(rethrow);
    }
  }

  async freeBytes(): Promise<number> {
    await this.#make(this.#objects).catch(rethrow);
    // Without what is reserved for root.
    const { bavail, bsize } = await statfs(this.#objects).catch(rethrow);
    return bavail * bsize;
  }

  async check(): Promise<void> {
    try {
      for (const folder of [this.#objects, this.#incoming]) {
        await this.#make(folder);
        await access(folder, constants.W_OK);
      }
    } catch (error) {
      throw translateCheckError(error);
    }
  }

  /**
   * Gives a path of an object to the work; with `make` its folder is there, also where another process removed that as empty
   * meanwhile.
   */
  async #inFolder<T>(
    path: string,
    { make = false }: { make?: boolean },
    work: (path: string) => Promise<T>,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const folder = dirname(path);
        if (!this.#beneath) {
          if (make && tries > 1) await this.#make(folder);
          return await work(path);
        }
        const below = relative(this.#objects, folder) || '.';
        const inside = (opened: string) => work(join(opened, basename(path)));
        if (!make) return await this.#beneath.inFolder(below, inside);
        return await this.#beneath.inMadeFolder(below, this.#modes.folder, inside);
      } catch (error) {
        if (!make || !isMissing(error) || tries === 100) throw error;
      }
    }
  }

  async #make(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: this.#modes.folder });
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

/** A rename is durable once its directory is synced; a new directory once its parent is, whichever process created it. */
async function syncDirectories(from: string, upTo: string): Promise<void> {
  const paths: string[] = [];
  for (let path = from; path.length >= upTo.length; path = dirname(path)) paths.push(path);
  await Promise.all(paths.map(syncDirectory));
}

function rethrow(error: unknown): never {
  throw translateFileError(error);
}

function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) rethrow(error);
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

function noneIfMissing(error: unknown): never[] {
  return isMissing(error) ? [] : rethrow(error);
}

function rethrowMissing(error: unknown): never {
  if (isMissing(error)) throw new MissingObject({ cause: error });
  rethrow(error);
}
