import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Bytes of lines that are kept while nobody reads the pipe. */
const MAX_KEPT = 1 << 20;
const RETRY_MS = 100;
/** A pipe takes up to so many bytes whole or not at all (PIPE_BUF of Linux). */
const WHOLE_BYTES = 4_096;
const LOG_FD = 2;

/**
 * Writes lines to a descriptor at once. A pipe that is full holds up nothing: its lines wait, up to a bound. What a full
 * disk or a pipe without a reader does not take is lost, but for the rest of a line that has begun.
 */
export class LineWriter {
  readonly #fd: number;
  /** The descriptor for lines that a pipe may take in part. */
  readonly #longFd: number;
  readonly #kept: Buffer[] = [];
  #bytes = 0;
  /** How much of the first line is written. */
  #begun = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(fd: number) {
    this.#fd = withoutWaiting(fd);
    // Where the log shares the pipe, it would go on in the middle of a long line. The log waits for the reader of this pipe, so
    // a line may wait as well.
    this.#longFd = isOneFile(fd, LOG_FD) ? fd : this.#fd;
  }

  /** Whether the line is written, or waits. */
  write(line: string): boolean {
    const bytes = Buffer.from(line);
    this.#flush();
    if (this.#bytes + bytes.length > MAX_KEPT) return false;
    this.#kept.push(bytes);
    this.#bytes += bytes.length;
    if (this.#flush()) return true;
    const hasBegun = this.#kept[0] === bytes && this.#begun > 0;
    if (hasBegun) return true;
    this.#kept.pop();
    this.#bytes -= bytes.length;
    return false;
  }

  /** Waits up to `ms` for a reader of the lines that wait; returns how many are lost. */
  async end(ms: number): Promise<number> {
    const until = performance.now() + ms;
    while (this.#flush() && this.#kept.length > 0 && performance.now() < until)
      await delay(RETRY_MS);
    return this.#kept.length;
  }

  /** Whether all is written, or the rest waits for a reader. */
  #flush(): boolean {
    try {
      for (let line = this.#kept[0]; line; line = this.#kept[0]) this.#writeFirst(line);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined;
        this.#flush();
      }, RETRY_MS).unref();
      return true;
    }
  }

  #writeFirst(line: Buffer): void {
    const fd = line.length > WHOLE_BYTES ? this.#longFd : this.#fd;
    while (this.#begun < line.length) this.#begun += writeSync(fd, line, this.#begun);
    this.#begun = 0;
    this.#bytes -= line.length;
    this.#kept.shift();
  }
}

function isOneFile(fd: number, other: number): boolean {
  try {
    const [a, b] = [fstatSync(fd), fstatSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    // The other is closed.
    return false;
  }
}

/** Opens the same pipe again so that a write does not wait; others that write to it still do. */
function withoutWaiting(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // The pipe is another account's, or this system has no /proc: writes wait for the reader.
    return fd;
  }
}
