import { type Box, runOf } from '../npy/write-box.ts';
import type { Dataset } from './list-datasets.ts';
import type { Hdf5File } from './open-hdf5.ts';

/** Limit of bytes that one read takes, unless a chunk is larger: chunks are decompressed as a whole. */
const BLOCK_BYTES = 4 << 20;
const MAX_BLOCK_BYTES = 64 << 20;
/** Limit of bytes of several chunks in a box. */
const BOX_BYTES = 16 << 20;
/** A box of shorter contiguous runs takes longer to write than to read repeatedly. */
const MIN_RUN_BYTES = 512;

export interface Hyperslab {
  from: number[];
  count: number[];
}

interface Layout {
  size: number;
  chunks: number[] | null;
}

/** The values of a dataset in C order, in blocks. */
export function* readBlocks(file: Hdf5File, dataset: Dataset): Generator<Buffer> {
  const { path, metadata, shape } = dataset;
  for (const slab of blocksOf(shape, metadata)) yield file.read(path, { metadata, ...slab }).bytes;
}

/**
 * The values of a dataset in boxes, for chunks that reading in C order would decompress again and again, such as chunks
 * of small parts of many pictures of a film.
 */
export function readBoxes(file: Hdf5File, dataset: Dataset): Generator<Buffer | Box> {
  const { path, metadata, shape } = dataset;
  const extents = extentsOfBoxes(shape, metadata);
  if (!extents) return readBlocks(file, dataset);
  return (function* () {
    for (const slab of boxesOf(shape, extents))
      yield { ...slab, bytes: file.read(path, { metadata, ...slab }).bytes };
  })();
}

/** Undefined if blocks in C order hold whole chunks, or one chunk is too large for a box or too thin. */
export function extentsOfBoxes(shape: number[], { size, chunks }: Layout): number[] | undefined {
  if (!chunks || shape.includes(0)) return undefined;
  const extents = shape.map((length, d) => Math.min(length, chunks[d] ?? 1));
  const { split, step } = planBlocks(shape, { size, chunks });
  const isWhole = (extent: number, d: number) =>
    d > split || (d < split ? extent === 1 : step % extent === 0 || step === shape[d]);
  if (extents.every(isWhole)) return undefined;
  let bytes = extents.reduce((product, extent) => product * extent, size);
  if (bytes > MAX_BLOCK_BYTES) return undefined;
  for (let d = shape.length - 1; d >= 0; d--) {
    const [length, chunk] = [shape[d] as number, extents[d] as number];
    const most = Math.max(chunk, Math.floor(BOX_BYTES / (bytes / chunk)));
    extents[d] = most >= length ? length : Math.floor(most / chunk) * chunk;
    bytes = (bytes / chunk) * (extents[d] as number);
    if (extents[d] !== length) break;
  }
  return runOf(extents, shape).length * size < MIN_RUN_BYTES ? undefined : extents;
}

export function* boxesOf(shape: number[], extents: number[]): Generator<Hyperslab> {
  const from = shape.map(() => 0);
  for (;;) {
    const count = shape.map((length, d) =>
      Math.min(extents[d] as number, length - (from[d] as number)),
    );
    yield { from: [...from], count };
    let d = shape.length - 1;
    for (; d >= 0; d--) {
      from[d] = (from[d] as number) + (extents[d] as number);
      if ((from[d] as number) < (shape[d] as number)) break;
      from[d] = 0;
    }
    if (d < 0) return;
  }
}

/** Blocks span the dimensions after `split`, `step` indexes of that one, and one index of each before it. */
function planBlocks(shape: number[], { size, chunks }: Layout) {
  let split = shape.length - 1;
  let inner = size;
  while (split > 0 && inner * (shape[split] as number) <= BLOCK_BYTES) {
    inner *= shape[split] as number;
    split--;
  }
  const length = shape[split] as number;
  return { split, step: stepOf(length, { inner, chunk: chunks?.[split] ?? 1 }) };
}

/** Blocks that lie one after the other in C order. */
function* blocksOf(shape: number[], layout: Layout): Generator<Hyperslab> {
  if (shape.length === 0) return void (yield { from: [], count: [] });
  if (shape.includes(0)) return;
  const { split, step } = planBlocks(shape, layout);
  yield* boxesOf(
    shape,
    shape.map((length, d) => (d > split ? length : d === split ? step : 1)),
  );
}

/** How many indexes of a dimension to read at once: whole chunks, if they fit. */
export function stepOf(length: number, { inner, chunk }: { inner: number; chunk: number }): number {
  const wanted = Math.max(1, Math.floor(BLOCK_BYTES / inner));
  const most = Math.max(1, Math.floor(MAX_BLOCK_BYTES / inner));
  const aligned = chunk > 0 ? Math.ceil(wanted / chunk) * chunk : wanted;
  return Math.min(length, most, aligned);
}
