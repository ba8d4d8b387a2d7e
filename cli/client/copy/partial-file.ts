import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { ifMissing } from '../../command-error.ts';
import { shortHash } from './short-hash.ts';

/** What an earlier process received of a file before it died. */
export interface PartialFile {
  /** Appends. To be closed by whoever claimed it. */
  file: FileHandle;
  path: string;
  /** A hash of the source's state, as hexadecimal digits. */
  tag: string;
  /** Bytes that are there. */
  size: number;
}

/**
 * Names of incomplete files beside their target: what is copied and by which account, its state, and the machine and
 * process that write there. A process that is alive is never disturbed. Others may write to the folder, and can compute
 * the names: what is not a file of this account alone is passed over, and no link is followed.
 */
export class PartialFiles {
  readonly #folder: string;
  readonly #prefix: string;

  constructor(folder: string, what: string[]) {
    this.#folder = folder;
    this.#prefix = `.windlass-${shortHash(JSON.stringify([...what, process.geteuid?.()]))}-`;
  }

  /** Where this process writes; without a tag nobody can go on with it. */
  pathFor(tag = 'none'): string {
    return join(this.#folder, `${this.#prefix}${tag}-${MACHINE}-${process.pid}`);
  }

  /** Takes over the file of a dead process, and removes those that nobody can continue. */
  async claim(): Promise<PartialFile | undefined> {
    let claimed: PartialFile | undefined;
    for (const name of await readdir(this.#folder).catch(ifMissing<string[]>([]))) {
      const tag = name.startsWith(this.#prefix) && this.#readTag(name.slice(this.#prefix.length));
      if (!tag) continue;
      const left = join(this.#folder, name);
      const found = await lstat(left).catch(() => undefined);
      if (!found || !isOwn(found)) continue;
      if (claimed || tag === 'none') await rm(left, { force: true }).catch(() => {});
      else claimed = await this.#takeOver(left, tag);
    }
    return claimed;
  }

  async #takeOver(left: string, tag: string): Promise<PartialFile | undefined> {
    const path = this.pathFor(tag);
    // One of the processes that find it succeeds.
    const isOurs = await rename(left, path).then(
      () => true,
      () => false,
    );
    if (!isOurs) return undefined;
    const file = await open(path, UNLINKED).catch(() => undefined);
    const found = await file?.stat();
    // Its only byte would be requested again, and nothing would show that the source is empty by now.
    if (file && found && isOwn(found) && found.size > 1)
      return { file, path, tag, size: found.size };
    await file?.close();
    await rm(path, { force: true }).catch(() => {});
    return undefined;
  }

  /** The tag in a name whose process is gone. */
  #readTag(rest: string): string | undefined {
    const [, tag, machine, pid] = /^(\w+)-(\w+)-(\d+)$/.exec(rest) ?? [];
    return machine === MACHINE && isGone(Number(pid)) ? tag : undefined;
  }
}

const MACHINE = shortHash(hostname());
/** Another account may have put something else in its place since it was looked at: a link, or a pipe that waits. */
const UNLINKED =
  constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A file of this account that has no other name: no link has led here. */
function isOwn(found: Stats): boolean {
  const uid = process.geteuid?.() ?? found.uid;
  return found.isFile() && found.nlink === 1 && found.uid === uid;
}

function isGone(pid: number): boolean {
  // In a container the next process may have the number of the last one.
  if (pid === process.pid) return true;
  try {
    return !process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
