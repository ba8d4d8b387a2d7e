import { and, eq, sql } from 'drizzle-orm';
import { sleep } from '../../shared/abort.ts';
import { type Database, isDatabaseDown, sqlState, type Tx } from '../../shared/database/connect.ts';
import { chunks, jobs } from '../../shared/database/schema.ts';
import {
  OUTPUT_STREAMS,
  type OutputOffsets,
  type OutputStream,
  streamNumber,
} from '../../shared/jobs/output.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { type Claim, LeaseLost, leasedBy, updateLeased } from '../engine/claims.ts';

import { DATABASE, isUnavailable, retry } from '../engine/retry.ts';
import { OutputSegments, type Segment } from './output-segments.ts';
import { type Part, WriteBuffer } from './write-buffer.ts';

/** Bytes that may wait to be stored, those on their way included, before append() makes its caller wait. */
const MAX_PENDING = 12 << 20;
/** What comes so fast goes straight into an object: the database is for what is watched as it comes. */
const DIRECT = 1 << 20;
/** Live output in the database is rolled up into an object once a stream has so much of it. */
const ROLL_UP = 4 << 20;
/** So much of a stream may stay in the database while the object store is away; then its writer waits, and so does the run. */
const MAX_LIVE = 32 << 20;
const RETRY_MS = 2_000;
const UNIQUE_VIOLATION = '23505';

export interface OutputContext {
  database: Database;
  objects: ObjectStore;
  /** Called after each commit. */
  onStored(): void;
  /** Aborted when the attempt is over: nothing waits for the object store any more. */
  over: AbortSignal;
}

/**
 * The one writer of a job's output. What is appended is stored in order, in numbered chunks, each batch in one
 * transaction that also proves the lease; `stored` says how far that is committed, which is what may be acknowledged.
 */
export class OutputWriter {
  readonly stored: OutputOffsets;
  readonly #context: OutputContext;
  readonly #claim: Claim;
  readonly #pieces = new WriteBuffer();
  readonly #segments: OutputSegments;
  #pendingBytes = 0;
  #seq: number;
  #live: OutputOffsets;
  #writing: Promise<void> | undefined;
  /** Callers of append() that wait for room. */
  #waiting: (() => void)[] = [];
  #rolling: Promise<void> | undefined;
  #rollNotBefore = 0;
  #whenStored: (stored: OutputOffsets) => void = () => {};
  #failure: unknown;

  private constructor(
    context: OutputContext,
    claim: Claim,
    start: { stored: OutputOffsets; live: OutputOffsets; seq: number },
  ) {
    this.#context = context;
    this.#claim = claim;
    this.stored = start.stored;
    this.#live = start.live;
    this.#seq = start.seq;
    this.#segments = new OutputSegments(context, claim.id);
  }

  /** Opens the output where the last attempt left it: with so many bytes stored. */
  static async open(
    context: OutputContext,
    claim: Claim,
    stored: OutputOffsets,
  ): Promise<OutputWriter> {
    const nothing = { stdout: 0, stderr: 0 };
    if (stored.stdout + stored.stderr === 0)
      return new OutputWriter(context, claim, {
        stored: { ...nothing },
        live: { ...nothing },
        seq: firstSeq(),
      });
    const { db } = context.database;
    const live = await db
      .select({
        stream: chunks.stream,
        bytes: sql<number>`sum(octet_length(${chunks.bytes}))::int`,
        seq: sql<number>`max(${chunks.seq})::float8`,
      })
      .from(chunks)
      .where(eq(chunks.job, claim.id))
      .groupBy(chunks.stream);
    const liveBytes = (stream: OutputStream) =>
      live.find(found => found.stream === streamNumber(stream))?.bytes ?? 0;
    return new OutputWriter(context, claim, {
      stored: { ...stored },
      live: { stdout: liveBytes('stdout'), stderr: liveBytes('stderr') },
      seq: Math.max(firstSeq(), ...live.map(found => found.seq + 1)),
    });
  }

  /** Takes bytes to store; waits while too many wait already. Rejects with LeaseLost when another worker has the job. */
  async append(stream: OutputStream, bytes: Buffer): Promise<void> {
    this.#throwFailure();
    this.#pieces.add(stream, bytes);
    this.#pendingBytes += bytes.length;
    this.#start();
    while (this.#pendingBytes > MAX_PENDING && this.#writing) {
      await new Promise<void>(resolve => this.#waiting.push(resolve));
      this.#throwFailure();
    }
  }

  /** Calls back after each commit, with how far it reaches: so far the host may be told to forget. */
  whenStored(callback: (stored: OutputOffsets) => void): void {
    this.#whenStored = callback;
  }

  /** Waits until all that was appended is stored. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.#rolling;
    this.#throwFailure();
  }

  #start(): void {
    if (this.#writing || this.#failure) return;
    this.#writing = this.#write()
      .catch((error: unknown) => {
        this.#failure = error;
      })
      .finally(() => {
        this.#writing = undefined;
        // Something may have come since it was last looked for.
        if (!this.#pieces.isEmpty) this.#start();
        this.#wake();
      });
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  async #write(): Promise<void> {
    while (!this.#pieces.isEmpty) {
      const batch = this.#pieces.take();
      await this.#store(batch.parts);
      batch.release();
      this.#pendingBytes -= batch.length;
      this.#wake();
      this.#context.onStored();
      this.#whenStored(this.stored);
      this.#startRolling();
      await this.#holdBack();
    }
  }

  /** Waits while more stays in the database than may: until the object store takes it, or the attempt is over. */
  async #holdBack(): Promise<void> {
    const { over } = this.#context;
    while (OUTPUT_STREAMS.some(stream => this.#live[stream] >= MAX_LIVE) && !over.aborted) {
      await (this.#rolling ?? sleep(over, RETRY_MS));
      this.#throwFailure();
      this.#startRolling();
    }
  }

  /** Begins to roll up what there is enough of. Where the store or the database is away that is tried again later. */
  #startRolling(): void {
    if (this.#rolling || this.#context.over.aborted) return;
    if (performance.now() < this.#rollNotBefore) return;
    if (OUTPUT_STREAMS.every(stream => this.#live[stream] < ROLL_UP)) return;
    this.#rolling = this.#rollAll()
      .catch((error: unknown) => this.#noteRollFailure(error))
      .finally(() => {
        this.#rolling = undefined;
      });
  }

  #noteRollFailure(error: unknown): void {
    this.#rollNotBefore = performance.now() + RETRY_MS;
    // An earlier try, whose answer was lost, may be committed while this one waits for it: then the keys are there.
    const wasMoved = sqlState(error) === UNIQUE_VIOLATION;
    const isAway = isUnavailable(error) || isDatabaseDown(error);
    const mayPass = isAway || wasMoved || this.#context.over.aborted;
    if (!mayPass) this.#failure = error;
  }

  async #rollAll(): Promise<void> {
    for (const stream of OUTPUT_STREAMS) {
      while (this.#live[stream] >= ROLL_UP) {
        const moved = await this.#rollUp(stream);
        // Less than was thought is there when the answer to an earlier commit was lost.
        this.#live[stream] = moved === 0 ? 0 : Math.max(0, this.#live[stream] - moved);
      }
    }
  }

  async #store(batch: Part[]): Promise<void> {
    const end = { ...this.stored };
    for (const { stream, bytes } of batch) end[stream] += bytes.length;
    const direct = await this.#putDirect(batch, end);
    const rows = this.#numberChunks(
      batch.filter(part => !direct.some(segment => segment.stream === part.stream)),
    );
    const commit = () =>
      this.#context.database.db.transaction(async tx => {
        await this.#advance(tx, end);
        if (rows.length > 0) await tx.insert(chunks).values(rows);
        for (const segment of direct) await this.#segments.insert(tx, segment);
      });
    await retry(async tries => {
      try {
        await commit();
      } catch (error) {
        // The answer to an earlier try was lost: it may have been committed, even while this one waited for it.
        const mayBeStored = tries > 0 && error instanceof LeaseLost;
        if (!mayBeStored || !(await this.#isStored(end))) throw error;
      }
    }, DATABASE);
    for (const stream of OUTPUT_STREAMS) {
      if (direct.some(segment => segment.stream === stream)) this.#live[stream] = 0;
      else this.#live[stream] += end[stream] - this.stored[stream];
    }
    Object.assign(this.stored, end);
  }

  /** Puts the streams that bring much at once into objects; none where the store is away. */
  async #putDirect(batch: Part[], end: OutputOffsets): Promise<Segment[]> {
    const streams = OUTPUT_STREAMS.filter(stream => end[stream] - this.stored[stream] >= DIRECT);
    if (streams.length === 0 || performance.now() < this.#rollNotBefore) return [];
    await this.#rolling;
    this.#throwFailure();
    // What is left from when the store was away is moved in pieces of its own.
    if (streams.some(stream => this.#live[stream] >= ROLL_UP)) return [];
    try {
      return await Promise.all(
        streams.map(stream =>
          this.#segments.putBytes({
            stream,
            at: this.stored[stream],
            bytes: batch.filter(part => part.stream === stream).map(part => part.bytes),
            hasChunks: this.#live[stream] > 0,
          }),
        ),
      );
    } catch (error) {
      this.#noteRollFailure(error);
      this.#throwFailure();
      return [];
    }
  }

  #numberChunks(batch: Part[]) {
    const end = { ...this.stored };
    return batch.map(({ stream, bytes }) => {
      const row = {
        job: this.#claim.id,
        seq: this.#seq++,
        stream: streamNumber(stream),
        start: end[stream],
        bytes,
      };
      end[stream] += bytes.length;
      return row;
    });
  }

  /** By compare-and-set: what an earlier try has committed is not committed a second time. Throws LeaseLost. */
  async #advance(tx: Tx, end: OutputOffsets): Promise<void> {
    const { stdout, stderr } = this.stored;
    const rows = await tx
      .update(jobs)
      .set({
        stdoutBytes: end.stdout,
        stderrBytes: end.stderr,
        consecutiveLosses: 0,
        version: sql`${jobs.version} + 1`,
      })
      .where(and(leasedBy(this.#claim), eq(jobs.stdoutBytes, stdout), eq(jobs.stderrBytes, stderr)))
      .returning({ id: jobs.id });
    if (rows.length === 0) throw new LeaseLost(this.#claim.id);
  }

  /** Whether the commit whose answer was lost took place. */
  async #isStored(end: OutputOffsets): Promise<boolean> {
    const { db } = this.#context.database;
    const [row] = await db
      .select({ stdout: jobs.stdoutBytes, stderr: jobs.stderrBytes })
      .from(jobs)
      .where(leasedBy(this.#claim));
    if (!row) throw new LeaseLost(this.#claim.id);
    return row.stdout === end.stdout && row.stderr === end.stderr;
  }

  /**
   * Moves a stream's first chunks into one object, and returns how many bytes that were; a reader finds the bytes in the
   * one place or the other at any moment.
   */
  async #rollUp(stream: OutputStream): Promise<number> {
    const segment = await this.#segments.putChunks(stream, ROLL_UP);
    if (!segment) return 0;
    await this.#context.database.db.transaction(async tx => {
      await updateLeased(tx, this.#claim, {});
      await this.#segments.insert(tx, segment);
    });
    return segment.length;
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure;
  }
}

/** Numbers go on from the time: chunks that were rolled up took theirs along. */
const firstSeq = () => Date.now() * 1_000;
