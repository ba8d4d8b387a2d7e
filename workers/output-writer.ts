import { Readable } from 'node:stream';
import { and, asc, eq, lt, sql } from 'drizzle-orm';
import { type Database, isDatabaseDown } from '../shared/database/connect.ts';
import { chunks, jobs, segments } from '../shared/database/schema.ts';
import { newId } from '../shared/ids.ts';
import {
  type Offsets,
  readStream,
  STREAMS,
  type Stream,
  streamNumber,
} from '../shared/jobs/output.ts';
import type { ObjectStore } from '../shared/storage/object-store.ts';
import { type Claim, heldBy, LeaseLost, outlastDatabase, updateHeld } from './claims.ts';
import { isStoreAway } from './outlast-store.ts';
import { pauseUnlessStopping } from './pause.ts';

/** Bytes that may wait to be stored before append() makes its caller wait. */
const MAX_PENDING = 8 << 20;
/** A chunk row holds at most so much: rows are read whole. */
const MAX_CHUNK = 1 << 20;
/** Live output in the database is rolled up into an object once a stream has so much of it. */
const ROLL_UP = 4 << 20;
/** Chunks in one object at most: they may be small. */
const ROLL_UP_CHUNKS = 1_000;
/** So much of a stream may stay in the database while the object store is away; then its writer waits, and so does the run. */
const MAX_LIVE = 32 << 20;
const RETRY_MS = 2_000;

interface Piece {
  stream: Stream;
  bytes: Buffer[];
  length: number;
}

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
  readonly stored: Offsets;
  readonly #context: OutputContext;
  readonly #claim: Claim;
  #pending: Piece[] = [];
  #pendingBytes = 0;
  #seq: number;
  #live: Offsets;
  #writing: Promise<void> | undefined;
  #rolling: Promise<void> | undefined;
  #rollNotBefore = 0;
  #whenStored: (stored: Offsets) => void = () => {};
  #failure: unknown;

  private constructor(
    context: OutputContext,
    claim: Claim,
    start: { stored: Offsets; live: Offsets; seq: number },
  ) {
    this.#context = context;
    this.#claim = claim;
    this.stored = start.stored;
    this.#live = start.live;
    this.#seq = start.seq;
  }

  /** Opens the output where the last attempt left it. */
  static async open(context: OutputContext, claim: Claim): Promise<OutputWriter> {
    const { db } = context.database;
    const [row] = await db
      .select({ stdout: jobs.stdoutBytes, stderr: jobs.stderrBytes })
      .from(jobs)
      .where(eq(jobs.id, claim.id));
    const live = await db
      .select({
        stream: chunks.stream,
        bytes: sql<number>`sum(octet_length(${chunks.bytes}))::int`,
        seq: sql<number>`max(${chunks.seq})::float8`,
      })
      .from(chunks)
      .where(eq(chunks.job, claim.id))
      .groupBy(chunks.stream);
    const liveBytes = (stream: Stream) =>
      live.find(found => found.stream === streamNumber(stream))?.bytes ?? 0;
    return new OutputWriter(context, claim, {
      stored: { stdout: row?.stdout ?? 0, stderr: row?.stderr ?? 0 },
      live: { stdout: liveBytes('stdout'), stderr: liveBytes('stderr') },
      // Numbers go on from the time: chunks that were rolled up took theirs along.
      seq: Math.max(Date.now() * 1_000, ...live.map(found => found.seq)) + 1,
    });
  }

  /** Takes bytes to store; waits while too many wait already. Rejects with LeaseLost when another worker has the job. */
  async append(stream: Stream, bytes: Buffer): Promise<void> {
    this.#throwFailure();
    const last = this.#pending.at(-1);
    if (last?.stream === stream && last.length + bytes.length <= MAX_CHUNK) {
      last.bytes.push(bytes);
      last.length += bytes.length;
    } else {
      this.#pending.push({ stream, bytes: [bytes], length: bytes.length });
    }
    this.#pendingBytes += bytes.length;
    this.#start();
    while (this.#pendingBytes > MAX_PENDING) {
      await this.#writing;
      this.#throwFailure();
    }
  }

  /** Calls back after each commit, with how far it reaches: so far the host may be told to forget. */
  whenStored(callback: (stored: Offsets) => void): void {
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
      });
  }

  async #write(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      await this.#store(batch);
      this.#pendingBytes -= batch.reduce((sum, piece) => sum + piece.length, 0);
      this.#context.onStored();
      this.#whenStored(this.stored);
      this.#startRolling();
      await this.#holdBack();
    }
  }

  /** Waits while more stays in the database than may: until the object store takes it, or the attempt is over. */
  async #holdBack(): Promise<void> {
    const { over } = this.#context;
    while (STREAMS.some(stream => this.#live[stream] >= MAX_LIVE) && !over.aborted) {
      await (this.#rolling ?? pauseUnlessStopping(over, RETRY_MS));
      this.#throwFailure();
      this.#startRolling();
    }
  }

  /** Begins to roll up what there is enough of. Where the store or the database is away that is tried again later. */
  #startRolling(): void {
    if (this.#rolling || this.#context.over.aborted) return;
    if (performance.now() < this.#rollNotBefore) return;
    if (STREAMS.every(stream => this.#live[stream] < ROLL_UP)) return;
    this.#rolling = this.#rollAll()
      .catch((error: unknown) => {
        this.#rollNotBefore = performance.now() + RETRY_MS;
        const mayPass = isStoreAway(error) || isDatabaseDown(error) || this.#context.over.aborted;
        if (!mayPass) this.#failure = error;
      })
      .finally(() => {
        this.#rolling = undefined;
      });
  }

  async #rollAll(): Promise<void> {
    for (const stream of STREAMS) {
      while (this.#live[stream] >= ROLL_UP) {
        const moved = await this.#rollUp(stream);
        // Less than was thought is there when the answer to an earlier commit was lost.
        this.#live[stream] = moved < ROLL_UP ? 0 : this.#live[stream] - moved;
      }
    }
  }

  async #store(batch: Piece[]): Promise<void> {
    const end = { ...this.stored };
    const rows = batch.map(({ stream, bytes, length }) => {
      const row = {
        job: this.#claim.id,
        seq: this.#seq++,
        stream: streamNumber(stream),
        start: end[stream],
        bytes: Buffer.concat(bytes),
      };
      end[stream] += length;
      return row;
    });
    const { db } = this.#context.database;
    await outlastDatabase(async tries => {
      if (tries > 0 && (await this.#isStored(end))) return;
      await db.transaction(async tx => {
        await updateHeld(tx, this.#claim, {
          stdoutBytes: end.stdout,
          stderrBytes: end.stderr,
          setbacks: 0,
        });
        await tx.insert(chunks).values(rows);
      });
    });
    for (const stream of STREAMS) this.#live[stream] += end[stream] - this.stored[stream];
    Object.assign(this.stored, end);
  }

  /** Whether the commit whose answer was lost took place. */
  async #isStored(end: Offsets): Promise<boolean> {
    const { db } = this.#context.database;
    const [row] = await db
      .select({ stdout: jobs.stdoutBytes, stderr: jobs.stderrBytes })
      .from(jobs)
      .where(heldBy(this.#claim));
    if (!row) throw new LeaseLost(this.#claim.id);
    return row.stdout === end.stdout && row.stderr === end.stderr;
  }

  /**
   * Moves a stream's first chunks into one object, and returns how many bytes that were; a reader finds the bytes in the
   * one place or the other at any moment.
   */
  async #rollUp(stream: Stream): Promise<number> {
    const { database, objects, over } = this.#context;
    const { id } = this.#claim;
    const where = and(eq(chunks.job, id), eq(chunks.stream, streamNumber(stream)));
    const found = await database.db
      .select({ start: chunks.start, length: sql<number>`octet_length(${chunks.bytes})` })
      .from(chunks)
      .where(where)
      .orderBy(asc(chunks.start))
      .limit(ROLL_UP_CHUNKS);
    const start = found[0]?.start ?? 0;
    let length = 0;
    for (const chunk of found) if (length < ROLL_UP) length += chunk.length;
    if (length === 0) return 0;
    const object = `output/${id}/${stream}-${start}-${newId()}`;
    const bytes = takeBytes(
      readStream({ db: database.db, objects }, id, { stream, from: start, until: start + length }),
      length,
    );
    await objects.put(object, Readable.from(bytes, { objectMode: false }), {
      size: length,
      signal: over,
    });
    await database.db.transaction(async tx => {
      await updateHeld(tx, this.#claim, {});
      await tx
        .insert(segments)
        .values({ job: id, stream: streamNumber(stream), start, length, object });
      await tx.delete(chunks).where(and(where, lt(chunks.start, start + length)));
    });
    return length;
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure;
  }
}

/** The first so many bytes. */
async function* takeBytes(source: AsyncIterable<Buffer>, count: number): AsyncGenerator<Buffer> {
  let left = count;
  for await (const piece of source) {
    yield piece.subarray(0, left);
    left -= piece.length;
    if (left <= 0) return;
  }
}
