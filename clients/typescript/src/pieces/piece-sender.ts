import type { Connection } from '../connection.ts';
import { WindlassError } from '../error.ts';
import { isPassing } from '../http.ts';
import { Losses } from '../losses.ts';
import { putFile } from '../put-file.ts';
import { Turns } from '../turns.ts';
import { nameOf } from './pieces-on-host.ts';

/** Smaller pieces cost more than they save. */
const LEAST_BYTES = 256 << 10;
/** Each piece is a job. */
const MAX_PIECES = 10_000;

/** Where pieces go, and how large they are at first. */
export interface PieceSending {
  sid: string;
  /** Absolute, on the host. */
  folder: string;
  length: number;
  /** Bytes of the file. */
  total: number;
  /** How often in a row a piece is sent that gets no smaller. */
  attempts: number;
}

/**
 * Sends the pieces of a file, each until it is through, however often the link breaks. Where none is through between
 * two losses, pieces get smaller.
 */
export class PieceSender {
  readonly #connection: Connection;
  readonly #given: PieceSending;
  readonly #least: number;
  readonly #turns = new Turns();
  /** The losses of pieces that were sent alone. */
  readonly #losses: Losses;
  #length: number;

  constructor(connection: Connection, given: PieceSending) {
    this.#connection = connection;
    this.#given = given;
    this.#length = given.length;
    this.#least = Math.max(LEAST_BYTES, Math.ceil(given.total / MAX_PIECES));
    this.#losses = new Losses(connection.http);
  }

  /** Bytes of the next piece. */
  get length(): number {
    return this.#length;
  }

  /** Sends these bytes, which begin there in the file, as one piece or as several; tells of each that is through. */
  async send(
    { start, bytes }: { start: number; bytes: Uint8Array },
    { signal, onSent }: { signal: AbortSignal; onSent: (start: number, length: number) => void },
  ): Promise<void> {
    let attempt = 0;
    for (let at = 0; at < bytes.length; ) {
      const length = this.#length;
      const piece = bytes.subarray(at, at + length);
      const name = nameOf(start + at, piece.length);
      if (await this.#put(name, piece, { attempt, signal })) {
        onSent(start + at, piece.length);
        at += piece.length;
        attempt = 0;
      } else attempt = this.#length < length ? 0 : attempt + 1;
    }
  }

  /** Returns false where the connection was lost. */
  async #put(
    name: string,
    piece: Uint8Array,
    { attempt, signal }: { attempt: number; signal: AbortSignal },
  ): Promise<boolean> {
    const { sid, folder, attempts } = this.#given;
    // Most often the folder that another copy removed can be made again. Nothing is written over, nor through a link.
    const place = { sid, path: `${folder}/${name}`, mode: 0o600, parents: true, exclusive: true };
    let begun = 0;
    let isAlone = false;
    const put = () => {
      begun = performance.now();
      isAlone = this.#turns.isAlone;
      return putFile(
        this.#connection,
        { ...place, body: new Blob([piece as Uint8Array<ArrayBuffer>]), size: piece.length },
        signal,
      );
    };
    try {
      await this.#turns.take(put);
      this.#losses.reset();
      return true;
    } catch (error) {
      signal.throwIfAborted();
      // It came through before, or with another copy of the file; the digest of the whole tells.
      if (error instanceof WindlassError && error.code === 'precondition_failed') return true;
      if (!isPassing(error) || attempt >= attempts) throw error;
      if (isAlone) await this.#losses.add(error, begun, signal);
      if (this.#losses.areEnough) {
        this.#losses.reset();
        const half = Math.max(this.#least, Math.ceil(piece.length / 2));
        this.#length = Math.min(this.#length, half);
      }
      await this.#connection.http.pause(attempt, { error, signal });
      return false;
    }
  }
}
