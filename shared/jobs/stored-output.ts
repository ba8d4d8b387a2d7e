import { and, asc, desc, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { chunks, segments } from '../database/schema.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import {
  type OutputOffsets,
  type OutputPiece,
  type OutputStream,
  streamName,
  streamNumber,
} from './output.ts';

export interface Stores {
  db: Db;
  objects: ObjectStore;
}

/** `seq` grows with the order of both streams; undefined where an earlier version rolled them up. */
export type StoredPiece = OutputPiece & { seq?: number };

type SegmentRow = typeof segments.$inferSelect;

/** Chunk rows of one query. */
const BATCH = 16;

/** A stream's segment with the byte at this offset. */
export async function findSegment(
  db: Db,
  job: string,
  stream: OutputStream,
  offset: number,
): Promise<SegmentRow | undefined> {
  const [segment] = await db
    .select()
    .from(segments)
    .where(
      and(
        eq(segments.job, job),
        eq(segments.stream, streamNumber(stream)),
        lte(segments.start, offset),
        gt(sql`${segments.start} + ${segments.length}`, offset),
      ),
    )
    // By the index, from the end: there may be thousands of segments before it.
    .orderBy(desc(segments.start))
    .limit(1);
  return segment;
}

/** One stream: from its first `segment` through the others to its chunk rows. Ends early as readChunks() does. */
export async function* readStream(
  stores: Stores,
  job: string,
  first: { stream: OutputStream; from: number; segment: SegmentRow | undefined },
  signal?: AbortSignal,
): AsyncGenerator<StoredPiece> {
  const { stream } = first;
  let { from, segment } = first;
  while (segment) {
    for await (const piece of readSegment(stores.objects, segment, { stream, from }, signal)) {
      from = piece.offset + piece.bytes.length;
      yield piece;
    }
    segment = await findSegment(stores.db, job, stream, from);
  }
  const offsets = { stdout: 0, stderr: 0, [stream]: from };
  yield* readChunks(stores.db, job, { streams: [stream], from: offsets, signal });
}

/** Each piece has bytes that were stored one after another, within a second. */
async function* readSegment(
  objects: ObjectStore,
  { object, start, length, times }: SegmentRow,
  { stream, from }: { stream: OutputStream; from: number },
  signal?: AbortSignal,
): AsyncGenerator<StoredPiece> {
  const marks = times ?? [];
  let at = from;
  let next = 0;
  const range = { start: from - start, end: length - 1 };
  for await (let bytes of await objects.get(object, { range, signal })) {
    while (bytes.length > 0) {
      while ((marks[next]?.[1] ?? Number.POSITIVE_INFINITY) <= at) next++;
      const [ms, , seq] = marks[next - 1] ?? [];
      const piece = bytes.subarray(0, (marks[next]?.[1] ?? Number.POSITIVE_INFINITY) - at);
      const time = ms === undefined ? undefined : new Date(ms);
      yield { stream, offset: at, bytes: piece, time, seq };
      at += piece.length;
      bytes = bytes.subarray(piece.length);
    }
  }
}

export interface StreamsFrom {
  streams: OutputStream[];
  from: OutputOffsets;
  signal?: AbortSignal;
}

/** Chunk rows. Ends early where one was rolled up meanwhile. */
export async function* readChunks(
  db: Db,
  job: string,
  { streams, from, signal }: StreamsFrom,
): AsyncGenerator<StoredPiece> {
  const at = { ...from };
  for (;;) {
    signal?.throwIfAborted();
    const found = await db
      .select()
      .from(chunks)
      .where(and(eq(chunks.job, job), or(...streams.map(stream => after(at, stream)))))
      .orderBy(asc(chunks.seq))
      .limit(BATCH);
    for (const chunk of found) {
      const stream = streamName(chunk.stream);
      if (chunk.start > at[stream]) return;
      const bytes = chunk.bytes.subarray(at[stream] - chunk.start);
      const { seq, at: time } = chunk;
      yield { stream, offset: at[stream], bytes, time: time ?? undefined, seq };
      at[stream] += bytes.length;
    }
    if (found.length < BATCH) return;
  }
}

const after = (at: OutputOffsets, stream: OutputStream) =>
  and(
    eq(chunks.stream, streamNumber(stream)),
    sql`${chunks.start} + octet_length(${chunks.bytes}) > ${at[stream]}`,
  );
