import { and, asc, desc, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { chunks, type StoredTimes, segments } from '../database/schema.ts';
import type { ObjectStore } from '../storage/object-store.ts';

export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const;
export type OutputStream = (typeof OUTPUT_STREAMS)[number];
export const streamNumber = (stream: OutputStream) => (stream === 'stdout' ? 1 : 2);
const streamName = (number: number): OutputStream => (number === 1 ? 'stdout' : 'stderr');

export interface OutputPiece {
  stream: OutputStream;
  /** Offset of the first byte in its stream. */
  offset: number;
  bytes: Buffer;
  /** When the first of them was stored, to the second; undefined where 0.1.0 stored them. */
  time?: Date;
}

/** Chunk rows of one query. */
const BATCH = 16;
const chunkEnd = sql<number>`${chunks.start} + octet_length(${chunks.bytes})`;

/** A position in both streams. */
export type OutputOffsets = Record<OutputStream, number>;

interface Stores {
  db: Db;
  objects: ObjectStore;
}

export interface OutputRange {
  from: OutputOffsets;
  /** Offsets that are stored, by the job's row. */
  until: OutputOffsets;
  signal?: AbortSignal;
}

/** Output moves from chunks to a segment at most once; a reader that misses both reads again. */
const PASSES = 4;

/**
 * The stored bytes of both streams: the segments of each stream, then the chunks of both in the order they were written.
 * May read past `until` where more was stored meanwhile.
 */
export async function* readOutput(
  stores: Stores,
  job: string,
  span: OutputRange,
): AsyncGenerator<OutputPiece> {
  const at = { ...span.from };
  for (let pass = 0; pass < PASSES; pass++) {
    for await (const piece of readOnce(stores, job, at, span.signal)) {
      at[piece.stream] = piece.offset + piece.bytes.length;
      yield piece;
    }
    if (OUTPUT_STREAMS.every(stream => at[stream] >= span.until[stream])) return;
  }
}

/** Segments, then chunks, from `at` on, which the caller advances. Ends early where a chunk was rolled up meanwhile. */
async function* readOnce(
  stores: Stores,
  job: string,
  at: OutputOffsets,
  signal?: AbortSignal,
): AsyncGenerator<OutputPiece> {
  for (const stream of OUTPUT_STREAMS) yield* readSegments(stores, job, stream, at[stream], signal);
  for (;;) {
    signal?.throwIfAborted();
    const found = await stores.db
      .select()
      .from(chunks)
      .where(and(eq(chunks.job, job), or(after(at, 'stdout'), after(at, 'stderr'))))
      .orderBy(asc(chunks.seq))
      .limit(BATCH);
    for (const chunk of found) {
      const stream = streamName(chunk.stream);
      if (chunk.start > at[stream]) return;
      const bytes = chunk.bytes.subarray(at[stream] - chunk.start);
      yield { stream, offset: at[stream], bytes, time: chunk.at ?? undefined };
    }
    if (found.length < BATCH) return;
  }
}

/** The stored bytes of one stream. */
export async function* readOutputStream(
  stores: Stores,
  job: string,
  options: { stream: OutputStream; from: number; until: number; signal?: AbortSignal },
): AsyncGenerator<Buffer> {
  const { stream, from, until, signal } = options;
  const other = stream === 'stdout' ? 'stderr' : 'stdout';
  const only = (offset: number) =>
    ({ [stream]: offset, [other]: Number.MAX_SAFE_INTEGER }) as OutputOffsets;
  const range = { from: only(from), until: only(until), signal };
  for await (const { bytes } of readOutput(stores, job, range)) yield bytes;
}

const after = (at: OutputOffsets, stream: OutputStream) =>
  and(eq(chunks.stream, streamNumber(stream)), sql`${chunkEnd} > ${at[stream]}`);

async function* readSegments(
  { db, objects }: Stores,
  job: string,
  stream: OutputStream,
  offset: number,
  signal?: AbortSignal,
): AsyncGenerator<OutputPiece> {
  let at = offset;
  for (;;) {
    const [segment] = await db
      .select()
      .from(segments)
      .where(
        and(
          eq(segments.job, job),
          eq(segments.stream, streamNumber(stream)),
          lte(segments.start, at),
          gt(sql`${segments.start} + ${segments.length}`, at),
        ),
      )
      // By the index, from the end: there may be thousands of segments before it.
      .orderBy(desc(segments.start))
      .limit(1);
    if (!segment) return;
    const range = { start: at - segment.start, end: segment.length - 1 };
    const timeAt = timesFrom(segment.times);
    for await (const bytes of await objects.get(segment.object, { range, signal })) {
      yield { stream, offset: at, bytes, time: timeAt(at) };
      at += bytes.length;
    }
  }
}

/** When the byte at an offset was stored; asked with offsets that grow. */
function timesFrom(times: StoredTimes | null): (offset: number) => Date | undefined {
  let next = 0;
  return offset => {
    while ((times?.[next]?.[1] ?? Number.POSITIVE_INFINITY) <= offset) next++;
    const found = times?.[next - 1];
    return found && new Date(found[0]);
  };
}
