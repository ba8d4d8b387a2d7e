import { WindlassError } from '../../shared/errors.ts';
import type { ExecChannel } from './exec-channel.ts';

const MAX_LINE = 65_536;

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
   * The next line without its newline; undefined at the end of the stream. An incomplete last line counts as a line.
   * Throws `remote_connection_failed` if the channel closes without an end, or the signal's reason.
   */
  async next(): Promise<string | undefined> {
    const parts: Buffer[] = [];
    let length = 0;
    for (;;) {
      const chunk = await this.#read();
      if (!chunk) return length > 0 ? Buffer.concat(parts).toString() : undefined;
      const newline = chunk.indexOf(10);
      parts.push(newline < 0 ? chunk : chunk.subarray(0, newline));
      length += chunk.length;
      if (newline < 0 && length < MAX_LINE) continue;
      if (newline >= 0 && newline + 1 < chunk.length) {
        this.#channel.stdout.unshift(chunk.subarray(newline + 1));
      }
      return Buffer.concat(parts).toString();
    }
  }

  /** Releases the channel. Call it before another reader takes over, or before the channel is destroyed. */
  detach(): void {
    this.#channel.stderr.off('data', this.#onError);
  }

  /** A chunk, or undefined at the end. */
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
        if (Buffer.isBuffer(chunk)) settle(() => resolve(chunk));
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
