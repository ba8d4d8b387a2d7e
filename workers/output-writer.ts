import { and, asc, eq, lt, sql } from 'drizzle-orm';
import type { Database, Tx } from '../shared/database/connect.ts';
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

/** Bytes that may wait to be stored before append() makes its caller wait. */
const MAX_PENDING = 8 << 20;
/** A chunk row holds at most so much: rows are read whole. */
const MAX_CHUNK = 1 << 20;
/** Live output in the database is rolled up into an object once a stream has so much of it. */
const ROLL_UP = 4 << 20;

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
      for (const stream of STREAMS) if (this.#live[stream] >= ROLL_UP) await this.#rollUp(stream);
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

  /** Moves a stream's chunks into one object; a reader finds the bytes in the one place or the other at any moment. */
  async #rollUp(stream: Stream): Promise<void> {
    const { database, objects } = this.#context;
    const { id } = this.#claim;
    const where = and(eq(chunks.job, id), eq(chunks.stream, streamNumber(stream)));
    const [first] = await database.db
      .select({ start: chunks.start })
      .from(chunks)
      .where(where)
      .orderBy(asc(chunks.start))
      .limit(1);
    if (!first) return;
    const bytes: Buffer[] = [];
    for await (const piece of readStream({ db: database.db, objects }, id, {
      stream,
      from: first.start,
      until: this.stored[stream],
    }))
      bytes.push(piece);
    const whole = Buffer.concat(bytes);
    const object = `output/${id}/${stream}-${first.start}-${newId()}`;
    await objects.put(object, whole);
    await database.db.transaction(async (tx: Tx) => {
      await updateHeld(tx, this.#claim, {});
      await tx.insert(segments).values({
        job: id,
        stream: streamNumber(stream),
        start: first.start,
        length: whole.length,
        object,
      });
      await tx.delete(chunks).where(and(where, lt(chunks.start, first.start + whole.length)));
    });
    this.#live[stream] = 0;
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure;
  }
}
