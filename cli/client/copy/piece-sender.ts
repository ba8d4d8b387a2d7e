import { posix } from 'node:path';
import { backoff, sleep } from '../../../clients/typescript/src/backoff.ts';
import { isPassing } from '../../../clients/typescript/src/http.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { Turns } from '../../../clients/typescript/src/turns.ts';
import { tellOfRetries } from '../connect.ts';
import { nameOf } from './pieces-on-host.ts';

/** Smaller ones cost more than they save. */
export const LEAST_BYTES = 256 << 10;
/** Each is a job. */
const MOST_PIECES = 10_000;
/** So often a piece that is sent alone is lost before pieces get smaller. */
const LOSSES = 2;
/** What is lost sooner was refused: its size is not why. */
const CUT_MS = 250;

/** Where pieces go, and how large they are at first. */
export interface PieceSending {
  session: Session;
  /** Absolute, on the host. */
  folder: string;
  length: number;
  /** Bytes of the file. */
  total: number;
}

/**
 * Sends the pieces of a file, each until it is through, however often the link is cut. Where none comes through between two
 * cuts, pieces get smaller.
 */
export class PieceSender {
  readonly #given: PieceSending;
  readonly #least: number;
  readonly #turns = new Turns();
  readonly #onRetry = tellOfRetries();
  #length: number;
  /** Of pieces that were sent alone, in a row. */
  #losses = 0;

  constructor(given: PieceSending) {
    this.#given = given;
    this.#length = given.length;
    this.#least = Math.max(LEAST_BYTES, Math.ceil(given.total / MOST_PIECES));
  }

  /** Of the next piece. */
  get length(): number {
    return this.#length;
  }

  /** Sends these bytes, which begin there in the file, as one piece or as several; tells of each that is through. */
  async send(
    { start, bytes }: { start: number; bytes: Uint8Array },
    { signal, onSent }: { signal: AbortSignal; onSent: (start: number, length: number) => void },
  ): Promise<void> {
    let at = 0;
    for (let attempt = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + this.#length);
      const name = nameOf(start + at, piece.length);
      if (await this.#put(name, piece, { attempt, signal })) {
        onSent(start + at, piece.length);
        at += piece.length;
        attempt = 0;
      } else attempt++;
    }
  }

  /** False where the connection was lost. */
  async #put(
    name: string,
    piece: Uint8Array,
    { attempt, signal }: { attempt: number; signal: AbortSignal },
  ): Promise<boolean> {
    const { session, folder } = this.#given;
    // Most often the folder that another copy removed can be made again.
    const options = { mode: 0o600, parents: true, attempts: 0, signal };
    let begun = 0;
    let isAlone = false;
    const put = () => {
      begun = performance.now();
      isAlone = this.#turns.isAlone;
      return session.writeFile(posix.join(folder, name), piece, options);
    };
    try {
      await this.#turns.take(put);
      this.#losses = 0;
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      const isCut = error.code === 'unreachable' && performance.now() - begun > CUT_MS;
      if (isCut && isAlone) this.#lose(piece.length);
      const ms = backoff(attempt);
      this.#onRetry({ error, seconds: ms / 1_000 });
      await sleep(ms, signal);
      return false;
    }
  }

  #lose(length: number): void {
    this.#losses++;
    if (this.#losses < LOSSES || length < this.#length) return;
    this.#losses = 0;
    this.#length = Math.max(this.#least, Math.ceil(length / 2));
  }
}
