import { type Database, isDatabaseDown, sqlState } from '../../shared/database/connect.ts';
import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { Claim } from '../engine/claim.ts';
import { isUnavailable } from '../engine/retry.ts';
import type { OutputRoom } from './output-room.ts';
import { OutputSegments, type Segment } from './output-segments.ts';
import { OutputStore } from './output-store.ts';
import {
  type Effect,
  initialState,
  isFull,
  isSettled,
  type OutputEvent,
  type OutputWriterState,
  step,
} from './output-writer-state.ts';
import { type Batch, WriteBuffer } from './write-buffer.ts';

const UNIQUE_VIOLATION = '23505';

interface OutputContext {
  database: Database;
  objects: ObjectStore;
  /** Called after each commit. */
  onStored(): void;
  /** Asked before bytes are taken. */
  room?: OutputRoom;
  /** Aborted when the attempt is over: the writer no longer waits for the object store. */
  over: AbortSignal;
}

/**
 * The one writer of a job's output: stores it in order, in batches, each in a transaction that proves the lease. Bytes
 * up to `stored` are committed and may be acknowledged. output-writer-state.ts decides; this class performs the
 * effects.
 */
export class OutputWriter {
  readonly #context: OutputContext;
  readonly #store: OutputStore;
  readonly #segments: OutputSegments;
  readonly #buffer = new WriteBuffer();
  #state: OutputWriterState;
  #batch: Batch | undefined;
  /** Put for the batch, and not committed yet. */
  #batchSegments: Segment[] = [];
  /** Callers of append() and flush() that wait for a change of state. */
  #waiting: (() => void)[] = [];
  #whenStored: (stored: OutputOffsets) => void = () => {};

  private constructor(context: OutputContext, claim: Claim, stored: OutputOffsets) {
    this.#context = context;
    this.#segments = new OutputSegments(context, claim.id);
    this.#store = new OutputStore(context.database, this.#segments, claim);
    this.#state = initialState(stored);
  }

  /** Opens the output where the last attempt left it: with so many bytes stored. */
  static async open(
    context: OutputContext,
    claim: Claim,
    stored: OutputOffsets,
  ): Promise<OutputWriter> {
    const writer = new OutputWriter(context, claim, stored);
    const hasOutput = stored.stdout + stored.stderr > 0;
    if (!hasOutput) return writer;
    const { live, rows } = await writer.#store.resume();
    writer.#state = initialState(stored, live, rows);
    return writer;
  }

  get stored(): OutputOffsets {
    return this.#state.stored;
  }

  /**
   * Takes bytes to store; waits while too many are pending. Rejects with LeaseRevoked, or with `insufficient_storage`:
   * then it has not taken these bytes, and all earlier ones are stored.
   */
  async append(stream: OutputStream, bytes: Buffer): Promise<void> {
    this.#throwFailure();
    this.#context.room?.admit(bytes.length);
    // No await before this: the order of the calls is that of the output.
    this.#buffer.add(stream, bytes);
    // A batch that is being stored is followed by what is buffered anyway.
    if (this.#state.write === 'idle') this.#dispatch({ type: 'appended' });
    while (isFull(this.#state, this.#buffer.bytes)) {
      await this.#nextChange();
      this.#throwFailure();
    }
  }

  /** The disk is short of space: append() rejects. */
  get isDiskShort(): boolean {
    return this.#context.room?.isDiskShort ?? false;
  }

  /** Whether append() or flush() rejected for the disk: what is not stored may be stored by a later attempt. */
  isForDisk(error: unknown): boolean {
    return this.#context.room?.isForDisk(error) ?? false;
  }

  /** Calls back after each commit with the committed offsets, which may be acknowledged to the host. */
  whenStored(callback: (stored: OutputOffsets) => void): void {
    this.#whenStored = callback;
  }

  /** Waits until all that was appended is stored. */
  async flush(): Promise<void> {
    while (!isSettled(this.#state, this.#buffer.bytes)) await this.#nextChange();
    this.#throwFailure();
  }

  #nextChange(): Promise<void> {
    return new Promise(resolve => this.#waiting.push(resolve));
  }

  #throwFailure(): void {
    if (this.#state.failure) throw this.#state.failure.error;
  }

  #dispatch(event: OutputEvent): void {
    const { state, effects } = step(this.#state, event, {
      now: performance.now(),
      isOver: this.#context.over.aborted,
      buffered: this.#buffer.bytes,
    });
    this.#state = state;
    for (const effect of effects) void this.#perform(effect);
    if (event.type !== 'appended') for (const resume of this.#waiting.splice(0)) resume();
  }

  async #perform(effect: Effect): Promise<void> {
    try {
      this.#dispatch(await this.#run(effect));
      if (effect.type !== 'commit') return;
      this.#context.onStored();
      this.#whenStored(this.stored);
    } catch (error) {
      const isTransient = isUnavailable(error) || isDatabaseDown(error) || wasMoved(error);
      this.#dispatch({ type: 'failed', effect: effect.type, error, isTransient });
    }
  }

  async #run(effect: Effect): Promise<OutputEvent> {
    switch (effect.type) {
      case 'put':
        this.#batchSegments = await this.#put(effect.streams);
        return { type: 'put' };
      case 'commit':
        return { type: 'committed', rows: await this.#commit() };
      case 'roll-up': {
        const { stream } = effect;
        return { type: 'rolled-up', stream, ...(await this.#store.rollUp(stream)) };
      }
      case 'pause':
        await sleep(this.#context.over, effect.ms);
        return { type: 'paused' };
    }
  }

  #put(streams: OutputStream[]): Promise<Segment[]> {
    const { stored, live } = this.#state;
    const { parts } = this.#takeBatch();
    return Promise.all(
      streams.map(stream =>
        this.#segments.putBytes({
          stream,
          at: stored[stream],
          hasChunks: live[stream] > 0,
          bytes: parts.filter(part => part.stream === stream).map(part => part.bytes),
        }),
      ),
    );
  }

  async #commit(): Promise<OutputOffsets> {
    const batch = this.#takeBatch();
    const rows = await this.#store.commit(this.#state.stored, batch.parts, this.#batchSegments);
    batch.release();
    this.#batch = undefined;
    this.#batchSegments = [];
    return rows;
  }

  /** The batch to store. Empties the buffer in the tick in which the state began the batch. */
  #takeBatch(): Batch {
    this.#batch ??= this.#buffer.take();
    return this.#batch;
  }
}

/** An earlier try whose answer was lost may commit while this one waits for it: then its keys exist. */
const wasMoved = (error: unknown) => sqlState(error) === UNIQUE_VIOLATION;
