import {
  type OutputPiece,
  type OutputSpan,
  readOutput,
  STREAMS,
} from '../../shared/jobs/output.ts';

/** Larger spans are read for each reader by itself, as they come. */
const SHARED_BYTES = 16 << 10;
/** What was read is kept so long for those who come a little later, and so much of it. */
const KEPT_MS = 2_000;
const KEPT_BYTES = 16 << 20;

/**
 * New output that many streams of one job want at once is read once: whoever is up to date begins where all the others
 * begin. Each for itself, some hundred of them keep the database busy.
 */
export class OutputReads {
  readonly #reads = new Map<string, Promise<OutputPiece[]>>();
  #kept = 0;

  /** As readOutput(); a short span ends exactly at `until`. */
  async *read(
    stores: Parameters<typeof readOutput>[0],
    job: string,
    span: OutputSpan,
  ): AsyncGenerator<OutputPiece> {
    const { from, until } = span;
    const bytes = STREAMS.reduce((sum, name) => sum + Math.max(0, until[name] - from[name]), 0);
    if (bytes === 0) return;
    if (bytes > SHARED_BYTES) return yield* readOutput(stores, job, span);
    // With its end: a read that was begun earlier may end before what this reader was told of.
    const key = [job, ...STREAMS.flatMap(name => [from[name], until[name]])].join(' ');
    yield* await (this.#reads.get(key) ?? this.#begin(key, collect(stores, job, span)));
  }

  #begin(key: string, read: Promise<OutputPiece[]>): Promise<OutputPiece[]> {
    this.#reads.set(key, read);
    const forget = () => this.#reads.delete(key);
    read.then(pieces => {
      const bytes = pieces.reduce((sum, piece) => sum + piece.bytes.length, 0);
      if (this.#kept + bytes > KEPT_BYTES) return forget();
      this.#kept += bytes;
      setTimeout(() => {
        this.#kept -= bytes;
        forget();
      }, KEPT_MS).unref();
    }, forget);
    return read;
  }
}

/** Not bound to one reader's signal: others may wait for it too. */
async function collect(
  stores: Parameters<typeof readOutput>[0],
  job: string,
  { from, until }: OutputSpan,
): Promise<OutputPiece[]> {
  const pieces: OutputPiece[] = [];
  for await (const { stream, offset, bytes } of readOutput(stores, job, { from, until })) {
    const length = Math.min(bytes.length, until[stream] - offset);
    // A copy: a part would keep the whole of a chunk in memory.
    if (length > 0) pieces.push({ stream, offset, bytes: Buffer.from(bytes.subarray(0, length)) });
  }
  return pieces;
}
