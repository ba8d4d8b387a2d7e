import { Readable } from 'node:stream';
import { and, asc, eq, gte, lt, sql } from 'drizzle-orm';
import type { Database, Tx } from '../../shared/database/connect.ts';
import { chunks, segments } from '../../shared/database/schema.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { type OutputStream, streamNumber } from '../../shared/jobs/output.ts';
import { storedTimes } from '../../shared/jobs/output-times.ts';
import { readOutputStream } from '../../shared/jobs/read-output.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { ROLL_UP, ROLL_UP_ROWS } from './output-writer-state.ts';

type SegmentsContext = { database: Database; objects: ObjectStore; over: AbortSignal };

/** A range of one stream's bytes, in an object. */
export interface Segment {
  stream: OutputStream;
  start: number;
  length: number;
  object: string;
  /** From this offset on the bytes were never in chunk rows: they are stored with the segment. */
  direct: number;
}

/** The objects of one job's output, each under a new key; visible from the commit of its row. */
export class OutputSegments {
  readonly #context: SegmentsContext;
  readonly #job: string;

  constructor(context: SegmentsContext, job: string) {
    this.#context = context;
    this.#job = job;
  }

  /** Puts a stream's first chunk rows into an object; returns how many, and undefined where there are none. */
  async putChunks(stream: OutputStream): Promise<{ segment: Segment; rows: number } | undefined> {
    const found = await this.#listChunks(stream);
    const start = found[0]?.start ?? 0;
    let length = 0;
    let rows = 0;
    for (; rows < found.length && length < ROLL_UP; rows++) length += found[rows]?.length ?? 0;
    if (length === 0) return undefined;
    const range = { stream, start, length, direct: start + length };
    return { segment: await this.#put(range, this.#readChunks(stream, start, length)), rows };
  }

  /** Puts the bytes at offset `at`, and the chunk rows before them, into an object. */
  async putBytes(given: {
    stream: OutputStream;
    at: number;
    bytes: Buffer[];
    hasChunks: boolean;
  }): Promise<Segment> {
    const { stream, at, bytes, hasChunks } = given;
    const [first] = hasChunks ? await this.#listChunks(stream) : [];
    const start = first?.start ?? at;
    const length = at - start + bytes.reduce((sum, part) => sum + part.length, 0);
    const segment = { stream, start, length, direct: at };
    if (start === at) return this.#put(segment, bytes);
    const before = this.#readChunks(stream, start, at - start);
    return this.#put(segment, concat(before, bytes));
  }

  /** Replaces the chunk rows of an object's range with the row of the object. `seq`: of its direct bytes, where it has any. */
  async insert(tx: Tx, { stream, direct, ...segment }: Segment, seq?: number): Promise<void> {
    const end = segment.start + segment.length;
    const place = { job: this.#job, stream: streamNumber(stream) };
    const rows = and(
      eq(chunks.job, place.job),
      eq(chunks.stream, place.stream),
      and(gte(chunks.start, segment.start), lt(chunks.start, end)),
    );
    const times = storedTimes(rows, seq === undefined ? undefined : { start: direct, seq });
    await tx.insert(segments).values({ ...place, ...segment, times });
    await tx.delete(chunks).where(rows);
  }

  async #put(
    segment: Omit<Segment, 'object'>,
    bytes: AsyncIterable<Buffer> | Buffer[],
  ): Promise<Segment> {
    const { length } = segment;
    const object = newObjectKey('output', this.#job);
    const source = Array.isArray(bytes) ? bytes : Readable.from(bytes, { objectMode: false });
    await this.#context.objects.put(object, source, { size: length, signal: this.#context.over });
    return { ...segment, object };
  }

  #readChunks(stream: OutputStream, from: number, length: number): AsyncGenerator<Buffer> {
    const { database, objects } = this.#context;
    const until = from + length;
    const read = readOutputStream({ db: database.db, objects }, this.#job, { stream, from, until });
    return takeBytes(read, length);
  }

  #listChunks(stream: OutputStream) {
    return this.#context.database.db
      .select({ start: chunks.start, length: sql<number>`octet_length(${chunks.bytes})` })
      .from(chunks)
      .where(and(eq(chunks.job, this.#job), eq(chunks.stream, streamNumber(stream))))
      .orderBy(asc(chunks.start))
      .limit(ROLL_UP_ROWS);
  }
}

async function* concat(first: AsyncIterable<Buffer>, second: Buffer[]): AsyncGenerator<Buffer> {
  yield* first;
  yield* second;
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
