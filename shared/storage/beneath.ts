import { constants, realpathSync, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Folders below a root in which another user may put links: nothing outside is read, written or removed. A folder is
 * opened, checked, and used by its descriptor, so that a replacement is not followed. Linux only; Node lacks openat2()
 * with RESOLVE_BENEATH.
 */
export class Beneath {
  readonly #root: string;
  readonly #gid: number;

  /** The other user must not be able to replace the root itself. */
  constructor(root: string) {
    this.#root = realpathSync(root);
    this.#gid = statSync(this.#root).gid;
  }

  /** Works in the folder of this path below the root, given as a path that leads to what was opened. ENOENT is thrown on. */
  async inFolder<T>(folder: string, work: (path: string) => Promise<T>): Promise<T> {
    const handle = await this.#open(folder);
    try {
      return await work(pathOf(handle));
    } finally {
      await handle.close();
    }
  }

  /** A file to read, of the group that shares the root: no link, also no hard one, and no pipe. */
  async openFile(path: string): Promise<FileHandle> {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const found = await file.stat();
    if (found.isFile() && found.gid === this.#gid) return file;
    await file.close();
    throw new Error('another file than ours is in the object store');
  }

  /** inFolder(), with what is missing made before. */
  async inMadeFolder<T>(
    folder: string,
    mode: number,
    work: (path: string) => Promise<T>,
  ): Promise<T> {
    await this.#make(folder, mode);
    return this.inFolder(folder, work);
  }

  async #make(folder: string, mode: number): Promise<void> {
    try {
      await this.inFolder(folder, async () => {});
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === '.') throw error;
      await this.inMadeFolder(dirname(folder), mode, path =>
        mkdir(join(path, basename(folder)), { mode }).catch(ignoreExisting),
      );
    }
  }

  async #open(folder: string): Promise<FileHandle> {
    const path = join(this.#root, folder);
    const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const opened = await readlink(pathOf(handle));
      if (opened === path) return handle;
      // Somebody else has just removed it as empty.
      const isRemoved = opened === `${path} (deleted)`;
      throw isRemoved
        ? Object.assign(new Error(`${folder} was removed`), { code: 'ENOENT' })
        : new Error(`a link leads from ${folder} out of the object store`);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
}

const pathOf = (handle: FileHandle) => `/proc/self/fd/${handle.fd}`;

function ignoreExisting(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
}
