import { constants, fstatSync, openSync, writeSync } from 'node:fs';

/** Bytes of lines that are kept while nobody reads the pipe. */
const MAX_KEPT = 1 << 20;
const RETRY_MS = 100;

/**
 * Writes lines to a descriptor at once. A pipe that is full holds up nothing: its lines wait, up to a bound. What a full
 * disk or a pipe without a reader does not take is lost, but for the rest of a line that has begun.
 */
export class LineWriter {
  readonly #fd: number;
  #kept = Buffer.alloc(0);
  #retry: NodeJS.Timeout | undefined;

  constructor(fd: number) {
    this.#fd = withoutWaiting(fd);
  }

  /** Whether the line is written, or waits. */
  write(line: string): boolean {
    const bytes = Buffer.from(line);
    if (this.#kept.length > 0) this.#flush();
    if (this.#kept.length + bytes.length > MAX_KEPT) return false;
    const before = this.#kept.length;
    this.#kept = before === 0 ? bytes : Buffer.concat([this.#kept, bytes]);
    const isWaiting = this.#flush();
    if (isWaiting || this.#kept.length < bytes.length) return true;
    this.#kept = this.#kept.subarray(0, this.#kept.length - bytes.length);
    return false;
  }

  /** Whether all is written, or the rest waits for a reader. */
  #flush(): boolean {
    try {
      while (this.#kept.length > 0)
        this.#kept = this.#kept.subarray(writeSync(this.#fd, this.#kept));
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
}

/** The same pipe, opened so that a write does not wait; others that write to it are not concerned. */
function withoutWaiting(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // The pipe is another account's, or this system has no /proc: writes wait for the reader.
    return fd;
  }
}
