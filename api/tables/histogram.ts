import { type AsyncBuffer, type FileMetaData, parquetRead } from 'hyparquet';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { RAW_PARSERS } from './encode-value.ts';
import { between, type Scalar, scaleOf } from './scale.ts';
import { TableReadError } from './thread-protocol.ts';

/**
 * The bins of a column of numbers or times, and how often it has none, as the text of a JSON object. They span exactly its
 * least to its greatest value in the table, also in a view of it. Each bin includes its lower edge, the last one its upper edge
 * too. Every value counts once, except missing ones, NaN and the infinities.
 */
export async function makeHistogram(
  file: AsyncBuffer,
  metadata: FileMetaData,
  { column, bins }: { column: ColumnStatistics; bins: number },
): Promise<string> {
  const scale = scaleOf(column);
  if (!scale) {
    const nulls = await eachValue(file, metadata, column.name, () => {});
    return JSON.stringify({ nulls, bins: [] });
  }
  const { min, max, write } = scale;
  const counts = new Array<number>(isSame(min, max) ? 1 : bins).fill(0);
  const share = shareOf(min, max);
  const nulls = await eachValue(file, metadata, column.name, value => {
    if (typeof value === 'number' && !Number.isFinite(value)) return;
    const at = Math.floor(share(value) * counts.length);
    const bin = Math.min(counts.length - 1, Math.max(0, at));
    counts[bin] = (counts[bin] ?? 0) + 1;
  });
  const edge = (i: number) => {
    if (i === 0) return write(min);
    return i === counts.length ? write(max) : write(between(min, max, i / counts.length));
  };
  const texts = counts.map(
    (count, i) => `{"from":${edge(i)},"to":${edge(i + 1)},"count":${count}}`,
  );
  return `{"nulls":${nulls},"bins":[${texts.join(',')}]}`;
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
  const counts = new Map<boolean | string, number>();
  const nulls = await eachValue<boolean | string>(file, metadata, column, given => {
    const isLong = typeof given === 'string' && given.length > MAX_TEXT;
    const value = isLong ? Array.from(given).slice(0, MAX_TEXT).join('') : given;
    counts.set(value, (counts.get(value) ?? 0) + 1);
    if (counts.size > MAX_COUNTED)
      throw new TableReadError(
        `Payload too large: ${column} has more than ${MAX_COUNTED} different values in these rows.`,
        'Let fewer rows pass the filter.',
      );
  });
  const values = [...counts].sort((a, b) => b[1] - a[1]).slice(0, MAX_VALUES);
  return JSON.stringify({ nulls, values: values.map(([value, count]) => ({ value, count })) });
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
    await parquetRead({
      file,
      metadata: { ...metadata, num_rows: group.num_rows, row_groups: [group] },
      columns: [column],
      parsers: RAW_PARSERS,
      onChunk: ({ columnData }) => {
        for (const value of columnData as ArrayLike<T | null | undefined> &
          Iterable<T | null | undefined>)
          if (value !== null && value !== undefined) take(value);
          else missing++;
      },
    });
    await new Promise(resolve => setImmediate(resolve));
  }
  return missing;
}

const isSame = (a: Scalar, b: Scalar) => a === b;

/** The position of a value between min and max, 0…1. Differences of integers are exact, those of numbers never infinite. */
function shareOf(min: Scalar, max: Scalar): (value: Scalar) => number {
  if (typeof min === 'bigint' && typeof max === 'bigint') {
    const range = Number(max - min);
    return value => Number(BigInt(value) - min) / range;
  }
  const low = Number(min);
  const range = Number(max) - low;
  if (Number.isFinite(range)) return value => (Number(value) - low) / range;
  const half = Number(max) / 2 - low / 2;
  return value => (Number(value) / 2 - low / 2) / half;
}
