import type { Bound, ColumnStatistics, ValueCount } from '../../../shared/database/schema.ts';

/** Bytes of one table's statistics as JSON: those of 2,500 columns are read, written and stored as one value. */
export const MAX_TABLE_STATISTICS = 2 << 20;

/** Characters and most frequent values of a text column, step by step; without any, the API counts them when asked. */
const STEPS = [
  { characters: 40, values: 20 },
  { characters: 16, values: 20 },
  { characters: 16, values: 5 },
  { characters: 16, values: 0 },
  { characters: 4, values: 0 },
];

/**
 * The statistics with texts shortened, and fewer of them, until they take at most `maxBytes` as JSON. Names and bounds of
 * numbers and times stay whole, as requests need them: these alone may take more.
 */
export function fitStatistics(columns: ColumnStatistics[], maxBytes: number): ColumnStatistics[] {
  let fitted = columns;
  for (const step of STEPS) {
    if (Buffer.byteLength(JSON.stringify(fitted)) <= maxBytes) break;
    fitted = columns.map(column => shorten(column, step));
  }
  return fitted;
}

function shorten(
  column: ColumnStatistics,
  { characters, values }: (typeof STEPS)[number],
): ColumnStatistics {
  if (column.type !== 'text') return column;
  const { top = [], min, max, ...others } = column;
  // By characters: half of one could not be stored.
  const cut = (text: string) => Array.from(text).slice(0, characters).join('');
  const cutBound = (bound: Bound) => (typeof bound === 'string' ? cut(bound) : bound);
  const kept = top.slice(0, values).map((counted): ValueCount => {
    const value = cut(counted.value);
    return value === counted.value ? counted : { value, count: counted.count, cut: true };
  });
  const shortened = { ...others, min: cutBound(min), max: cutBound(max) };
  return values > 0 ? { ...shortened, top: kept } : shortened;
}
