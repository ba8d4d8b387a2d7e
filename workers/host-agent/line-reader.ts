import { WindlassError } from '../../shared/errors/errors.ts';
import type { ExecChannel } from './exec-channel.ts';

const MAX_LINE = 65_536;
const NEWLINE = 10;

/**
 * Reads a channel's first lines and leaves every byte after them in its standard output for the next reader. Hand-made,
 * because node:readline reads ahead and keeps what it has read.
 */
export class LineReader {
  readonly #channel: ExecChannel;
  readonly #signal: AbortSignal;
  #stderr = '';
  readonly #onError = (chunk: Buffer) => {
    this.#stderr = (this.#stderr + chunk.toString()).slice(0, 1000);
  };

  constructor(channel: ExecChannel, signal: AbortSignal) {
    this.#channel = channel;
    this.#signal = signal;
    channel.stderr.on('data', this.#onError);
    // A broken pipe shows as a missing line.
    for (const stream of [channel.stdin, channel.stdout, channel.stderr])
      stream.on('error', () => {});
  }

  /** The first 1000 characters of standard error so far. */
  errorText(): string {
    return this.#stderr.trim();
  }

  /**
   * The next line without its newline; an incomplete last line counts; undefined at the end. Throws
   * `remote_connection_failed` if the channel closes without an end, or the signal's reason.
   */
  async next(): Promise<string | undefined> {
    const parts: Buffer[] = [];
    let length = 0;
    for (;;) {
      const piece = await this.#read();
      if (!piece) return length > 0 ? Buffer.concat(parts).toString() : undefined;
      const isEnd = piece.at(-1) === NEWLINE;
      parts.push(isEnd ? piece.subarray(0, -1) : piece);
      length += piece.length;
      if (isEnd || length >= MAX_LINE) return Buffer.concat(parts).toString();
    }
  }

  /**
   * Returns the chunk up to its first line break and puts the rest back at once: in the next tick an ended, empty
   * stream takes nothing back.
   */
  #keepRest(chunk: Buffer): Buffer {
    const end = chunk.indexOf(NEWLINE) + 1;
    if (end === 0 || end === chunk.length) return chunk;
    this.#channel.stdout.unshift(chunk.subarray(end));
    return chunk.subarray(0, end);
  }

  /** Releases the channel. Call it before another reader takes over or the channel is destroyed. */
  detach(): void {
    this.#channel.stderr.off('data', this.#onError);
  }

  /** A chunk up to its first line break, or undefined at the end. */
  #read(): Promise<Buffer | undefined> {
    const { stdout } = this.#channel;
    const signal = this.#signal;
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        stdout.off('readable', onReadable);
        stdout.off('end', onReadable);
        stdout.off('close', onClose);
        signal.removeEventListener('abort', onAbort);
        act();
      };
      const onReadable = () => {
        const chunk: unknown = stdout.read();
        if (Buffer.isBuffer(chunk)) settle(() => resolve(this.#keepRest(chunk)));
        else if (stdout.readableEnded) settle(() => resolve(undefined));
      };
      const onClose = () => {
        if (stdout.readableEnded) return settle(() => resolve(undefined));
        settle(() =>
          reject(new WindlassError('remote_connection_failed', { detail: 'the channel closed.' })),
        );
      };
      const onAbort = () => settle(() => reject(signal.reason));
      stdout.on('readable', onReadable);
      stdout.on('end', onReadable);
      stdout.on('close', onClose);
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
      else if (stdout.closed) onClose();
      else onReadable();
    });
  }
}
