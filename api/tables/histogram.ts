import { createHash } from 'node:crypto';
import { type AsyncBuffer, type FileMetaData, parquetRead } from 'hyparquet';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { isExact, RAW_PARSERS } from './encode-value.ts';
import { between, type Scalar, type Scale, scaleOf } from './scale.ts';
import { TableReadError } from './thread-protocol.ts';

/**
 * The bins of a column of numbers or times, and the count of its missing values, as JSON. They span its least to
 * greatest value in the table, also for a view, and include their lower edges; the last bin has its upper edge too. NaN
 * and the infinities are in none: `others` counts them.
 */
export async function makeHistogram(
  file: AsyncBuffer,
  metadata: FileMetaData,
  { column, bins }: { column: ColumnStatistics; bins: number },
): Promise<string> {
  const scale = scaleOf(column);
  let others = 0;
  if (!scale) {
    const nulls = await eachValue(file, metadata, column.name, () => others++);
    return JSON.stringify({ nulls, others, bins: [] });
  }
  const edges = edgesOf(column, scale, bins);
  const counts = new Array<number>(edges.length - 1).fill(0);
  const find = binOf(edges);
  // Doubles hold these integers exactly, and are compared faster.
  const isPlain = typeof edges[0] === 'number';
  const nulls = await eachValue(file, metadata, column.name, value => {
    if (typeof value === 'number' && !Number.isFinite(value)) {
      others++;
      return;
    }
    const bin = find(isPlain ? Number(value) : BigInt(value));
    counts[bin] = (counts[bin] ?? 0) + 1;
  });
  const texts = edges.map(edge => scale.write(edge));
  const parts = counts.map(
    (count, i) => `{"from":${texts[i]},"to":${texts[i + 1]},"count":${count}}`,
  );
  return `{"nulls":${nulls},"others":${others},"bins":[${parts.join(',')}]}`;
}

/**
 * One more than there are bins. Numbers have bins of equal width. Edges of days, microseconds and integers past 2^53
 * are rounded up to the next whole one, because these are what is written. A single value has one bin.
 */
function edgesOf(column: ColumnStatistics, { min, max }: Scale, bins: number): Scalar[] {
  if (min === max) return [min, max];
  const inner = Array.from({ length: bins - 1 }, (_, i) => i + 1);
  if (column.type === 'number' || (column.type === 'integer' && !isExact(column))) {
    const [low, high] = [Number(min), Number(max)];
    const range = (high - low) * bins;
    const edge = (i: number) =>
      Number.isFinite(range) ? low + ((high - low) * i) / bins : between(low, high, i / bins);
    return [low, ...inner.map(edge), high];
  }
  const [low, high, parts] = [BigInt(min), BigInt(max), BigInt(bins)];
  const edge = (i: number) => low + ((high - low) * BigInt(i) + parts - 1n) / parts;
  return [low, ...inner.map(edge), high];
}

/** The bin of a value: the last one whose lower edge is not above it, as the edges say. A guess by division may be one off. */
function binOf(edges: Scalar[]): (value: Scalar) => number {
  const last = edges.length - 2;
  const low = edges[0] as Scalar;
  // Halves of numbers, since the difference of two may be infinite.
  const above = (value: Scalar) =>
    typeof value === 'bigint' ? Number(value - BigInt(low)) : value / 2 - Number(low) / 2;
  const width = above(edges[last + 1] as Scalar) / (last + 1);
  return value => {
    const guess = Math.floor(above(value) / width);
    let bin = Math.max(0, Math.min(last, guess)) || 0;
    while (bin > 0 && value < (edges[bin] as Scalar)) bin--;
    while (bin < last && value >= (edges[bin + 1] as Scalar)) bin++;
    return bin;
  };
}

/** Characters of a text; as many as those that are counted when a table is made. */
const MAX_TEXT = 200;
const MAX_VALUES = 20;
/** Different values. */
const MAX_COUNTED = 100_000;

/** The counts of the commonest values, and how often there is none, as the text of a JSON object. */
export async function countValues(
  file: AsyncBuffer,
  metadata: FileMetaData,
  column: string,
): Promise<string> {
  /** By value; by its digest where it is long. */
  const counts = new Map<
    boolean | string,
    { value: boolean | string; count: number; cut?: true }
  >();
  const nulls = await eachValue<boolean | string>(file, metadata, column, given => {
    const isLong = typeof given === 'string' && given.length > MAX_TEXT;
    const key = isLong ? digestOf(given) : given;
    const counted = counts.get(key);
    if (counted) counted.count++;
    else counts.set(key, { ...(isLong ? cut(given) : { value: given }), count: 1 });
    if (counts.size > MAX_COUNTED)
      throw new TableReadError(
        `${column} has more than ${MAX_COUNTED} different values in these rows.`,
        'Let fewer rows pass the filter.',
      );
  });
  const values = [...counts.values()].sort((a, b) => b.count - a.count).slice(0, MAX_VALUES);
  return JSON.stringify({ nulls, values });
}

/** Longer than any text that is a key itself. */
const digestOf = (text: string) =>
  createHash('sha512')
    .update(text)
    .digest('hex')
    .padEnd(MAX_TEXT + 1);

/** Cuts by characters, as DuckDB does: a surrogate pair is one. */
function cut(text: string): { value: string; cut?: true } {
  const value = Array.from(text.slice(0, 2 * MAX_TEXT))
    .slice(0, MAX_TEXT)
    .join('');
  return value === text ? { value } : { value, cut: true };
}

/** Reads row group by row group, and yields to other requests in between. How many values are missing. */
async function eachValue<T = Scalar>(
  file: AsyncBuffer,
  metadata: FileMetaData,
  column: string,
  take: (value: T) => void,
): Promise<number> {
  let missing = 0;
  for (const group of metadata.row_groups) {
    const chunks: Iterable<T | null | undefined>[] = [];
    await parquetRead({
      file,
      metadata: { ...metadata, num_rows: group.num_rows, row_groups: [group] },
      columns: [column],
      parsers: RAW_PARSERS,
      // An error thrown here would reject a promise that hyparquet drops, which ends the thread: take() is called after
      // the read.
      onChunk: ({ columnData }) => void chunks.push(columnData as (typeof chunks)[number]),
    });
    for (const chunk of chunks)
      for (const value of chunk)
        if (value !== null && value !== undefined) take(value);
        else missing++;
    await new Promise(resolve => setImmediate(resolve));
  }
  return missing;
}
