import type { Dataset } from './list-datasets.ts';
import type { Hdf5File } from './open-hdf5.ts';

/** Of one reading, unless a single chunk is larger: a chunk is decompressed as a whole each time. */
const BLOCK_BYTES = 4 << 20;
const MAX_BLOCK_BYTES = 64 << 20;

interface Place {
  from: number[];
  count: number[];
}

/** The values of a dataset in C order, in blocks. */
export function* readBlocks(file: Hdf5File, dataset: Dataset): Generator<Buffer> {
  const { path, metadata, shape } = dataset;
  for (const place of blocksOf(shape, metadata))
    yield file.read(path, { metadata, ...place }).bytes;
}

/** Blocks that lie one after the other in C order: whole in the last dimensions, one index in the first ones. */
function* blocksOf(
  shape: number[],
  { size, chunks }: { size: number; chunks: number[] | null },
): Generator<Place> {
  if (shape.length === 0) return void (yield { from: [], count: [] });
  if (shape.includes(0)) return;
  let split = shape.length - 1;
  let inner = size;
  while (split > 0 && inner * (shape[split] as number) <= BLOCK_BYTES) {
    inner *= shape[split] as number;
    split--;
  }
  const length = shape[split] as number;
  const step = stepOf(length, { inner, chunk: chunks?.[split] ?? 1 });
  const index = shape.slice(0, split).map(() => 0);
  for (;;) {
    for (let at = 0; at < length; at += step)
      yield {
        from: [...index, at, ...shape.slice(split + 1).map(() => 0)],
        count: [...index.map(() => 1), Math.min(step, length - at), ...shape.slice(split + 1)],
      };
    let d = split - 1;
    for (; d >= 0; d--) {
      if (++(index[d] as number) < (shape[d] as number)) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/** How many indexes of a dimension are read at once: whole chunks, if they are not too large. */
export function stepOf(length: number, { inner, chunk }: { inner: number; chunk: number }): number {
  const wanted = Math.max(1, Math.floor(BLOCK_BYTES / inner));
  const most = Math.max(1, Math.floor(MAX_BLOCK_BYTES / inner));
  const aligned = chunk > 0 ? Math.ceil(wanted / chunk) * chunk : wanted;
  return Math.min(length, most, aligned);
}
