import {
  OUTPUT_STREAMS,
  type OutputPiece,
  type OutputRange,
  type OutputStream,
  readOutput,
  readOutputStream,
} from '../../../shared/jobs/output.ts';
import { Semaphore } from '../../concurrency/semaphore.ts';
import { UserSemaphores } from '../../concurrency/user-semaphores.ts';
import type { JobSummary } from '../views/job-summary.ts';
import { encodeOutput, type OutputFrame } from './event-frames.ts';

/** So much at most is held for those who take it later, encoded up to six times as large. */
export const SHORT_BYTES = 16 << 10;
/** Readers of more hold what the database gives at once, some MiB, or a connection to the object store. */
const LONG_AT_ONCE = 16;
/** Of one user: whoever reads slowly, and much, leaves turns to others. */
const LONG_AT_ONCE_EACH = 8;
/** A client that does not take what it was sent within so long gives its turn to another. */
export const DRAIN_MS = 1_000;
/** A turn that others wait for ends after so long, however much is left: a client decides how fast it reads. */
const TURN_MS = 1_000;

/** Whose output is read. */
type Read = Pick<JobSummary, 'id' | 'owner'>;

/** Who reads. */
export interface Taker<T> {
  /** Whether to go on. */
  take(item: T): boolean | Promise<boolean>;
  /** For one that has left nothing is read. */
  readonly gone: boolean;
}

type Stores = Parameters<typeof readOutput>[0];

/** Bytes of a span. */
export const spanBytes = ({ from, until }: OutputRange): number =>
  OUTPUT_STREAMS.reduce((sum, name) => sum + Math.max(0, until[name] - from[name]), 0);

/** Reads stored output, as it is or as events; see encodeOutput() for `complete`. */
export class OutputReader {
  readonly #stores: Stores;
  readonly #users = new UserSemaphores(LONG_AT_ONCE_EACH);
  readonly #turns = new Semaphore(LONG_AT_ONCE);

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** A span of SHORT_BYTES at most; ends exactly where it ends, save for a character that is cut there. */
  async readShort(job: string, span: OutputRange, complete: boolean): Promise<OutputFrame[]> {
    const frames: OutputFrame[] = [];
    const pieces = cutAtEnd(readOutput(this.#stores, job, span), span.until);
    for await (const frame of encodeOutput(pieces, span.from, complete)) frames.push(frame);
    return frames;
  }

  /**
   * A span of any length, as it comes, once there is a turn; may go on past its end. True when all of it was taken; else
   * the rest is to be asked for anew.
   */
  readLong(
    job: Read,
    { span, complete }: { span: OutputRange; complete: boolean },
    taker: Taker<OutputFrame>,
  ): Promise<boolean> {
    const read = () => encodeOutput(readOutput(this.#stores, job.id, span), span.from, complete);
    return this.#takeTurn(job.owner, read, taker);
  }

  /** The bytes of one stream; as readLong(). */
  readBytes(
    job: Read,
    span: { stream: OutputStream; from: number; until: number },
    taker: Taker<Buffer>,
  ): Promise<boolean> {
    const read = () => readOutputStream(this.#stores, job.id, span);
    // Most are so short that whoever asks for them need not wait for those who read slowly.
    if (span.until - span.from <= SHORT_BYTES) return this.#readFor(read, taker, () => false);
    return this.#takeTurn(job.owner, read, taker);
  }

  #takeTurn<T>(user: string, read: () => AsyncIterable<T>, taker: Taker<T>): Promise<boolean> {
    const areOthersWaiting = () => this.#turns.hasWaiters || this.#users.hasWaiters(user);
    const go = () => this.#readFor(read, taker, areOthersWaiting);
    return this.#users.take(user, () => this.#turns.take(go));
  }

  async #readFor<T>(
    read: () => AsyncIterable<T>,
    taker: Taker<T>,
    areOthersWaiting: () => boolean,
  ): Promise<boolean> {
    if (taker.gone) return false;
    const until = performance.now() + TURN_MS;
    for await (const item of read()) {
      const goesOn = taker.take(item);
      if (!(goesOn === true || (await goesOn))) return false;
      if (areOthersWaiting() && performance.now() > until) return false;
    }
    return true;
  }
}

async function* cutAtEnd(
  pieces: AsyncIterable<OutputPiece>,
  until: OutputRange['until'],
): AsyncGenerator<OutputPiece> {
  for await (const { stream, offset, bytes } of pieces) {
    const length = Math.min(bytes.length, until[stream] - offset);
    if (length > 0) yield { stream, offset, bytes: bytes.subarray(0, length) };
  }
}
