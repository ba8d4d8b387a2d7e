import { readdir, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { ifMissing } from '../../command-error.ts';
import { shortHash } from './short-hash.ts';

/** What an earlier process received of a file before it died. */
export interface PartialFile {
  path: string;
  /** A hash of the source's state, as hexadecimal digits. */
  tag: string;
  /** Bytes that are there. */
  size: number;
}

/**
 * Names of incomplete files beside their target: what is copied, its state, and the machine and process that write
 * there. A process that is alive is never disturbed.
 */
export class PartialFiles {
  readonly #folder: string;
  readonly #prefix: string;

  constructor(folder: string, what: string[]) {
    this.#folder = folder;
    this.#prefix = `.windlass-${shortHash(JSON.stringify(what))}-`;
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
      if (claimed || tag === 'none') {
        await rm(left, { force: true });
        continue;
      }
      const path = this.pathFor(tag);
      // One of the processes that find it succeeds.
      const isOurs = await rename(left, path).then(() => true, ifMissing(false));
      if (!isOurs) continue;
      const { size } = await stat(path);
      // Its only byte would be requested again, and nothing would show that the source is empty by now.
      if (size > 1) claimed = { path, tag, size };
      else await rm(path, { force: true });
    }
    return claimed;
  }

  /** The tag in a name whose process is gone. */
  #readTag(rest: string): string | undefined {
    const [, tag, machine, pid] = /^(\w+)-(\w+)-(\d+)$/.exec(rest) ?? [];
    return machine === MACHINE && isGone(Number(pid)) ? tag : undefined;
  }
}

const MACHINE = shortHash(hostname());

function isGone(pid: number): boolean {
  // In a container the next process may have the number of the last one.
  if (pid === process.pid) return true;
  try {
    return !process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
