import type { Response } from 'express';

/** The longest answer that is read at once. */
export const SEND_BUFFER_BYTES = 1 << 20;
/** Limit on the buffers at once, however many clients there are and however slowly they read. */
const MAX_LENT = 32;
/** Kept for the next answers: new memory costs as much as reading a file into it. */
const MAX_KEPT = 8;

/** Buffers in which an answer waits as a whole until the kernel has taken it. */
export class SendBuffers {
  #lent = 0;
  readonly #kept: Buffer[] = [];

  /** A buffer until the response closes; undefined where all are lent, and the answer must be streamed. */
  lend(res: Response): Buffer | undefined {
    if (this.#lent === MAX_LENT || res.closed || res.destroyed) return undefined;
    this.#lent++;
    const buffer = this.#kept.pop() ?? Buffer.allocUnsafeSlow(SEND_BUFFER_BYTES);
    res.once('close', () => {
      this.#lent--;
      // Where the connection was lost, the file may still be read into it.
      if (res.writableFinished && this.#kept.length < MAX_KEPT) this.#kept.push(buffer);
    });
    return buffer;
  }
}
