import {
  OUTPUT_STREAMS,
  type OutputOffsets,
  type OutputPiece,
  type OutputRange,
  type OutputStream,
} from './output.ts';
import {
  findSegment,
  readChunks,
  readStream,
  type StoredPiece,
  type Stores,
  type StreamsFrom,
} from './stored-output.ts';

/** Output moves from chunks to a segment at most once; a reader that misses both reads again. */
const PASSES = 4;

/**
 * The stored bytes of both streams in the order in which they were stored; segments of earlier versions, which do not
 * know it, come first. May read past `until` where more was stored meanwhile.
 */
export async function* readOutput(
  stores: Stores,
  job: string,
  { from, until, signal }: OutputRange,
): AsyncGenerator<OutputPiece> {
  const at = { ...from };
  for (let pass = 0; pass < PASSES; pass++) {
    const wanted = OUTPUT_STREAMS.filter(stream => at[stream] < until[stream]);
    if (wanted.length === 0) return;
    const rest = { streams: wanted, from: at, signal };
    for await (const { stream, offset, bytes, time } of readOnce(stores, job, rest)) {
      at[stream] = offset + bytes.length;
      yield { stream, offset, bytes, time };
    }
  }
}

/** Ends early where a chunk was rolled up meanwhile. */
async function* readOnce(
  stores: Stores,
  job: string,
  wanted: StreamsFrom,
): AsyncGenerator<StoredPiece> {
  const { streams, from, signal } = wanted;
  const find = (stream: OutputStream) => findSegment(stores.db, job, stream, from[stream]);
  const found = await Promise.all(streams.map(find));
  // What was printed just now is in chunk rows alone.
  if (found.every(segment => !segment)) return yield* readChunks(stores.db, job, wanted);
  yield* mergeStored(
    streams.map((stream, n) =>
      readStream(stores, job, { stream, from: from[stream], segment: found[n] }, signal),
    ),
  );
}

/** The pieces of several streams, by the order in which they were stored. */
async function* mergeStored(
  sources: AsyncGenerator<StoredPiece>[],
): AsyncGenerator<StoredPiece, void> {
  try {
    let heads = await Promise.all(
      sources.map(async source => ({ source, next: await source.next() })),
    );
    for (;;) {
      heads = heads.filter(({ next }) => !next.done);
      const [first] = heads.toSorted((a, b) => order(a.next.value) - order(b.next.value));
      if (!first) return;
      yield first.next.value;
      first.next = await first.source.next();
    }
  } finally {
    await Promise.all(sources.map(source => source.return(undefined)));
  }
}

const order = (piece: StoredPiece) => piece.seq ?? 0;

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
