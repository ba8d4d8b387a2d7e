import { and, asc, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { chunks, segments } from '../database/schema.ts';
import type { ObjectStore } from '../storage/object-store.ts';

export const STREAMS = ['stdout', 'stderr'] as const;
export type Stream = (typeof STREAMS)[number];
export const streamNumber = (stream: Stream) => (stream === 'stdout' ? 1 : 2);
const streamName = (number: number): Stream => (number === 1 ? 'stdout' : 'stderr');

export interface OutputPiece {
  stream: Stream;
  /** Offset of the first byte in its stream. */
  offset: number;
  bytes: Buffer;
}

/** How much is read from the database at once. */
const BATCH = 16;
const chunkEnd = sql<number>`${chunks.start} + octet_length(${chunks.bytes})`;

/** Where a reader stands in both streams. */
export type Offsets = Record<Stream, number>;

/**
 * The stored bytes of both streams from these offsets on, in the order they came as far as that is known: what was
 * rolled up into objects first, by stream, then the chunks by number. Ends where nothing more is stored.
 */
export async function* readOutput(
  stores: { db: Db; objects: ObjectStore },
  job: string,
  from: Offsets,
  signal?: AbortSignal,
): AsyncGenerator<OutputPiece> {
  const at = { ...from };
  for (const stream of STREAMS) {
    for await (const piece of readSegments(stores, job, stream, at[stream], signal)) {
      at[stream] = piece.offset + piece.bytes.length;
      yield piece;
    }
  }
  for (;;) {
    const found = await stores.db
      .select()
      .from(chunks)
      .where(and(eq(chunks.job, job), or(after(at, 'stdout'), after(at, 'stderr'))))
      .orderBy(asc(chunks.seq))
      .limit(BATCH);
    for (const chunk of found) {
      const stream = streamName(chunk.stream);
      // Rolled up between the two reads: start over, the objects have it now.
      if (chunk.start > at[stream]) return yield* readOutput(stores, job, at, signal);
      const bytes = chunk.bytes.subarray(at[stream] - chunk.start);
      yield { stream, offset: at[stream], bytes };
      at[stream] += bytes.length;
    }
    if (found.length < BATCH) return;
  }
}

/** The stored bytes of one stream from an offset on. */
export async function* readStream(
  stores: { db: Db; objects: ObjectStore },
  job: string,
  options: { stream: Stream; offset: number; signal?: AbortSignal },
): AsyncGenerator<Buffer> {
  const other = options.stream === 'stdout' ? 'stderr' : 'stdout';
  const from = { [options.stream]: options.offset, [other]: Number.MAX_SAFE_INTEGER } as Offsets;
  for await (const piece of readOutput(stores, job, from, options.signal)) yield piece.bytes;
}

const after = (at: Offsets, stream: Stream) =>
  and(eq(chunks.stream, streamNumber(stream)), sql`${chunkEnd} > ${at[stream]}`);

async function* readSegments(
  { db, objects }: { db: Db; objects: ObjectStore },
  job: string,
  stream: Stream,
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
      .limit(1);
    if (!segment) return;
    const range = { start: at - segment.start, end: segment.length - 1 };
    for await (const bytes of await objects.get(segment.object, { range, signal })) {
      yield { stream, offset: at, bytes };
      at += bytes.length;
    }
  }
}
