import { WindlassError } from '../../shared/errors.ts';
import type { ExecChannel } from './exec-channel.ts';

const LONGEST_LINE = 65_536;

/** Reads a channel's first lines and leaves every byte after them in its standard output, for the next reader. */
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
    // A host that ends early breaks the pipe: the missing answer says so.
    channel.stdin.on('error', ignore);
    channel.stdout.on('error', ignore);
    channel.stderr.on('error', ignore);
  }

  /** What the channel has written to standard error so far, its first 1000 characters. */
  errorText(): string {
    return this.#stderr.trim();
  }

  /**
   * The next line without its newline; undefined where the stream ends before anything came.
   * What came without a newline before the end counts as a line.
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
      if (newline < 0 && length < LONGEST_LINE) continue;
      if (newline >= 0 && newline + 1 < chunk.length) {
        this.#channel.stdout.unshift(chunk.subarray(newline + 1));
      }
      return Buffer.concat(parts).toString();
    }
  }

  /** Gives the channel back; call it before another reads it or it is destroyed. */
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

function ignore(): void {}
