import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { type Axis, axisOf, isTooWide } from './axis.ts';
import { checkFilterValue } from './filter-value.ts';
import { findColumn, invalidQuery } from './table-query.ts';
import type { SeriesRange, SeriesRequest } from './thread-protocol.ts';

/** Doubles beyond it lack some whole numbers. */
const MAX_SAFE = 2 ** 53;

export interface SeriesQuery {
  x: string;
  y: string;
  points: number;
  from?: string;
  to?: string;
}

/** What to read for a series; undefined where one of the columns has no values. Throws `invalid_input`. */
export function parseSeries(
  query: SeriesQuery,
  columns: ColumnStatistics[],
): SeriesRequest | undefined {
  const { points } = query;
  const x = plotted('x', query.x, columns);
  const y = plotted('y', query.y, columns);
  if (isTooWide(y)) throw invalidQuery('y', `${tooWide(y)}, which a plot cannot tell apart`);
  const isRange = query.from !== undefined && query.to !== undefined;
  if (isTooWide(x) && !isRange) throw invalidQuery('x', `${tooWide(x)}: give \`from\` and \`to\``);
  const base = isTooWide(x) ? query.from : undefined;
  if (base !== undefined) checkEdge('from', x.type, base);
  const edge = (field: 'from' | 'to', axis: Axis | undefined) =>
    parseEdge(field, query[field], { column: x, axis });
  const axis = axisOf(x, base);
  const [from, to] = [edge('from', axis), edge('to', axis)];
  if (!axis || !axisOf(y)) return undefined;
  const range = rangeOf(axis, { from, to, isInteger: x.type !== 'number' });
  if (range.from >= (range.end ?? range.to))
    throw invalidQuery(
      query.to === undefined ? 'from' : 'to',
      'there is nothing between `from` and `to`',
    );
  // One value has one bucket.
  return { x, y, points: range.from === range.to ? 1 : points, range, base };
}

function plotted(field: 'x' | 'y', name: string, columns: ColumnStatistics[]): ColumnStatistics {
  const column = findColumn(field, name, columns);
  if (column.type === 'text' || column.type === 'boolean')
    throw invalidQuery(field, `is a column of type ${column.type}; give one of numbers or times`);
  return column;
}

const tooWide = ({ type }: ColumnStatistics) =>
  type === 'timestamp' ? 'its times span more than 285 years' : 'its values span 2^53 or more';

function checkEdge(field: 'from' | 'to', type: ColumnStatistics['type'], text: string): void {
  const problem = checkFilterValue(type, 'eq', text);
  if (problem) throw invalidQuery(field, problem);
}

function parseEdge(
  field: 'from' | 'to',
  text: string | undefined,
  { column, axis }: { column: ColumnStatistics; axis: Axis | undefined },
): number | undefined {
  if (text === undefined) return undefined;
  // The default edge may be no value of the type, as the day after 9999-12-31.
  if (axis?.isWhole && JSON.stringify(text) === axis.write(axis.max + 1)) return axis.max + 1;
  // Between two integers there is room for an edge, unless they are texts.
  const type = column.type === 'integer' && !axis?.isWhole ? 'number' : column.type;
  checkEdge(field, type, text);
  const value = axis?.parse(text);
  if (value !== undefined && !Number.isFinite(value)) throw invalidQuery(field, 'must be a number');
  if (axis?.isWhole && Math.abs(value ?? 0) > MAX_SAFE)
    throw invalidQuery(
      field,
      isTooWide(column)
        ? `with \`from\`, ${tooWide(column).replace('its', 'these')}`
        : 'is more than 2^53 away from the values',
    );
  return value;
}

/** By default from the least value to the first one after the greatest. */
function rangeOf(
  { min, max }: Axis,
  { from = min, to, isInteger }: { from?: number; to?: number; isInteger: boolean },
): SeriesRange {
  if (to !== undefined) return { from, to };
  // Past 2^53 the next integer may be no double.
  if (isInteger) return { from, to: Math.max(max + 1, nextUp(max)) };
  // The width is that of the values: a range that ends a little later has edges like 0.30000000000000004.
  return { from, to: max, end: nextUp(max) };
}

/** The next greater double. */
function nextUp(value: number): number {
  const bits = new BigInt64Array(1);
  const double = new Float64Array(bits.buffer);
  // Turns -0 into 0, whose bits differ.
  double[0] = value + 0 === 0 ? 0 : value;
  bits[0] = (bits[0] ?? 0n) + (value < 0 ? -1n : 1n);
  return double[0];
}
