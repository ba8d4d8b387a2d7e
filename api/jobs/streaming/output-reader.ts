import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import {
  OUTPUT_STREAMS,
  type OutputPiece,
  type OutputRange,
  type OutputStream,
} from '../../../shared/jobs/output.ts';
import { readOutput, readOutputStream } from '../../../shared/jobs/read-output.ts';
import { Semaphore } from '../../concurrency/semaphore.ts';
import { UserSemaphores } from '../../concurrency/user-semaphores.ts';
import { encodeOutput, type OutputFrame } from './event-frames.ts';

/** Limit on the bytes of output that are read into memory at once; encoded they may be six times as many. */
export const SMALL_BYTES = 16 << 10;
/** Concurrent large reads: each takes some MiB from the database, or a connection to the object store. */
const LARGE_READS = 16;
/** Limit on the large reads of one user, so that slow clients leave slots to other users. */
const LARGE_READS_PER_USER = 8;
/** Time after which a large read yields its slot when its client has not read what was written. */
export const WRITE_TIMEOUT_MS = 1_000;
/** Time slice of a large read while others wait for a slot: a client decides how fast it reads. */
const SLICE_MS = 1_000;

/** The job whose output is read. */
type Source = Pick<JobSummary, 'id' | 'owner'>;

/** Where output is written to. */
interface Sink<T> {
  /** False to stop the read. */
  write(item: T): boolean | Promise<boolean>;
  /** Nothing is read for a sink that is closed. */
  readonly closed: boolean;
}

type Stores = Parameters<typeof readOutput>[0];

export const rangeBytes = ({ from, until }: OutputRange): number =>
  OUTPUT_STREAMS.reduce((sum, name) => sum + Math.max(0, until[name] - from[name]), 0);

/** Reads stored output, as it is or as events; see encodeOutput() for `complete`. */
export class OutputReader {
  readonly #stores: Stores;
  readonly #users = new UserSemaphores(LARGE_READS_PER_USER);
  readonly #slots = new Semaphore(LARGE_READS);

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** At most SMALL_BYTES, as events; ends exactly at `until`, or before a character that is split there. */
  async readSmall(job: string, range: OutputRange, complete: boolean): Promise<OutputFrame[]> {
    const frames: OutputFrame[] = [];
    const pieces = cutAtEnd(readOutput(this.#stores, job, range), range.until);
    for await (const frame of encodeOutput(pieces, range.from, complete)) frames.push(frame);
    return frames;
  }

  /**
   * A range of any length, as events, once a slot is free; may read past its end. False when it stopped before the end:
   * the caller asks for the rest anew.
   */
  readLarge(
    job: Source,
    { range, complete }: { range: OutputRange; complete: boolean },
    sink: Sink<OutputFrame>,
  ): Promise<boolean> {
    const read = () => encodeOutput(readOutput(this.#stores, job.id, range), range.from, complete);
    return this.#readInSlot(job.owner, read, sink);
  }

  /** The bytes of one stream; as readLarge(). */
  readBytes(
    job: Source,
    range: { stream: OutputStream; from: number; until: number },
    sink: Sink<Buffer>,
  ): Promise<boolean> {
    const read = () => readOutputStream(this.#stores, job.id, range);
    // Most outputs are small: they need not wait for slow clients.
    if (range.until - range.from <= SMALL_BYTES) return this.#readInto(read, sink, () => false);
    return this.#readInSlot(job.owner, read, sink);
  }

  #readInSlot<T>(user: string, read: () => AsyncIterable<T>, sink: Sink<T>): Promise<boolean> {
    const mustYield = () => this.#slots.hasWaiters || this.#users.hasWaiters(user);
    const go = () => this.#readInto(read, sink, mustYield);
    return this.#users.run(user, () => this.#slots.run(go));
  }

  async #readInto<T>(
    read: () => AsyncIterable<T>,
    sink: Sink<T>,
    mustYield: () => boolean,
  ): Promise<boolean> {
    if (sink.closed) return false;
    const deadline = performance.now() + SLICE_MS;
    for await (const item of read()) {
      const goesOn = sink.write(item);
      if (!(goesOn === true || (await goesOn))) return false;
      if (mustYield() && performance.now() > deadline) return false;
    }
    return true;
  }
}

async function* cutAtEnd(
  pieces: AsyncIterable<OutputPiece>,
  until: OutputRange['until'],
): AsyncGenerator<OutputPiece> {
  for await (const { stream, offset, bytes, time } of pieces) {
    const length = Math.min(bytes.length, until[stream] - offset);
    if (length > 0) yield { stream, offset, bytes: bytes.subarray(0, length), time };
  }
}
