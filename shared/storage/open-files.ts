import type { FileHandle } from 'node:fs/promises';

const IDLE_MS = 2_000;
/** Limit on open files that nobody reads at the moment. */
const MAX_IDLE = 64;

interface Entry {
  opened: Promise<FileHandle>;
  readers: number;
  timer?: NodeJS.Timeout;
}

/**
 * Files that are read in pieces, one soon after the other, such as a video that plays, stay open in between. Only for files
 * that never change; the `nlink` of a removed file is 0.
 */
export class OpenFiles {
  readonly #entries = new Map<string, Entry>();
  #idle = 0;

  /** Calls `work` with the file, which stays open until `work` is done. */
  use<T>(
    name: string,
    open: () => Promise<FileHandle>,
    work: (file: FileHandle) => Promise<T>,
  ): Promise<T> {
    return this.#lend(name, this.#entries.get(name) ?? this.#open(name, open), work);
  }

  /** Like use(), where the file is open; undefined where it is not. */
  async useOpen<T>(name: string, work: (file: FileHandle) => Promise<T>): Promise<T | undefined> {
    const entry = this.#entries.get(name);
    return entry && this.#lend(name, entry, work);
  }

  async #lend<T>(name: string, entry: Entry, work: (file: FileHandle) => Promise<T>): Promise<T> {
    if (entry.timer) this.#wake(entry);
    entry.readers++;
    try {
      return await work(await entry.opened);
    } finally {
      entry.readers--;
      if (entry.readers === 0) this.#rest(name, entry);
    }
  }

  /** Closes the file when it is read no more. */
  forget(name: string): void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    if (!entry?.timer) return;
    this.#wake(entry);
    close(entry);
  }

  #open(name: string, open: () => Promise<FileHandle>): Entry {
    const entry: Entry = { opened: open(), readers: 0 };
    this.#entries.set(name, entry);
    // The next one tries again.
    entry.opened.catch(() => {
      if (this.#entries.get(name) === entry) this.#entries.delete(name);
    });
    return entry;
  }

  #wake(entry: Entry): void {
    clearTimeout(entry.timer);
    entry.timer = undefined;
    this.#idle--;
  }

  #rest(name: string, entry: Entry): void {
    const isKnown = this.#entries.get(name) === entry;
    if (isKnown && this.#idle < MAX_IDLE) {
      this.#idle++;
      entry.timer = setTimeout(() => this.forget(name), IDLE_MS).unref();
      return;
    }
    if (isKnown) this.#entries.delete(name);
    close(entry);
  }
}

/** One that could not be opened has nothing to close. */
function close({ opened }: Entry): void {
  opened.then(file => file.close()).catch(() => undefined);
}
