import { LRUCache } from 'lru-cache';
import { type Axis, axisOf } from './axis.ts';
import { RAW_PARSERS } from './encode-value.ts';
import { checkSize, type OpenTable, type RowGroup, readColumns } from './row-groups.ts';
import type { SeriesRange, SeriesRequest } from './thread-protocol.ts';

/** Doubles of recently plotted columns: 10 million rows of two columns take 160 MB. */
const CACHED_BYTES = 192 << 20;
/** Time without a plot after which the cache is dropped. */
const IDLE_MS = 300_000;

/** Equal widths of x, and of y the least and greatest value in each. */
export interface Buckets {
  /** One more than there are buckets: each includes its lower edge, and not its upper one. */
  edges: Float64Array;
  min: Float64Array;
  max: Float64Array;
  /** Values of y. */
  count: Float64Array;
}

function createBuckets(
  points: number,
  { from, to, end = to }: SeriesRange,
  isWhole: boolean,
): Buckets {
  const edges = new Float64Array(points + 1);
  for (let i = 0; i < points; i++) {
    const edge = edgeOf({ from, to }, i, points);
    edges[i] = isWhole ? Math.ceil(edge) : edge;
  }
  edges[0] = from;
  edges[points] = end;
  const filled = (value: number) => new Float64Array(points).fill(value);
  return { edges, min: filled(Infinity), max: filled(-Infinity), count: filled(0) };
}

/** Exact where the edge is a whole number: a sum of two shares would miss some by rounding. */
function edgeOf({ from, to }: Pick<SeriesRange, 'from' | 'to'>, i: number, points: number): number {
  if (!Number.isFinite((to - from) * points)) return from * (1 - i / points) + to * (i / points);
  const [width, parts] = [to - from, from + ((to - from) * i) / points];
  if (!Number.isInteger(from) || !Number.isSafeInteger(width)) return parts;
  // The product may be past 2^53.
  const product = BigInt(width) * BigInt(i);
  const whole = product / BigInt(points);
  return from + Number(whole) + Number(product - whole * BigInt(points)) / points;
}

/** Adds rows, given as doubles side by side. Missing values, NaN and the infinities of either count nowhere. */
function addToBuckets({ edges, min, max, count }: Buckets, x: Float64Array, y: Float64Array): void {
  const last = count.length - 1;
  const from = edges[0] as number;
  const to = edges[last + 1] as number;
  // It subtracts halves, since the difference of two doubles may be infinite.
  const perUnit = count.length / (to / 2 - from / 2);
  for (let row = 0; row < x.length; row++) {
    const at = x[row] as number;
    const value = y[row] as number;
    // NaN is neither.
    if (!(at >= from && at < to) || !Number.isFinite(value)) continue;
    // The division rounds, and of subnormal widths it gives NaN; the edges decide.
    let bucket = Math.min(last, Math.floor((at / 2 - from / 2) * perUnit)) || 0;
    while (at < (edges[bucket] as number)) bucket--;
    while (at >= (edges[bucket + 1] as number)) bucket++;
    count[bucket] = (count[bucket] as number) + 1;
    if (value < (min[bucket] as number)) min[bucket] = value;
    if (value > (max[bucket] as number)) max[bucket] = value;
  }
}

interface Axes {
  x: Axis;
  y: Axis;
}

/** Sorts the rows of a table into buckets, row group by row group, and yields to other requests in between. */
export class SeriesReader {
  readonly #columns = new LRUCache<string, Float64Array>({
    maxSize: CACHED_BYTES,
    sizeCalculation: values => values.byteLength || 1,
  });
  #idle: NodeJS.Timeout | undefined;

  /** The text of a JSON object. */
  async read(table: OpenTable, { x, y, points, range, base }: SeriesRequest): Promise<string> {
    const axes = { x: axisOf(x, base), y: axisOf(y) };
    if (!axes.x || !axes.y) throw new Error('one of the columns has no values');
    const given = { x: axes.x, y: axes.y };
    const buckets = createBuckets(points, range, axes.x.isWhole);
    await this.#fill(buckets, table, given);
    return writeBuckets(buckets, given);
  }

  async #fill(buckets: Buckets, { key, file, metadata }: OpenTable, axes: Axes): Promise<void> {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#columns.clear(), IDLE_MS).unref();
    for (const [at, group] of metadata.row_groups.entries()) {
      if (isOutside(group, axes.x, buckets.edges)) continue;
      const place = (axis: Axis) => `${at} ${key} ${axis.base} ${axis.column}`;
      let x = this.#columns.get(place(axes.x));
      let y = this.#columns.get(place(axes.y));
      if (!x || !y) {
        const columns = [...new Set([axes.x.column, axes.y.column])];
        checkSize(group, columns);
        const read = await readColumns({ file, metadata }, group, {
          columns,
          parsers: RAW_PARSERS,
        });
        const decode = (axis: Axis) => {
          const values = read.get(axis.column) ?? [];
          const doubles = new Float64Array(values.length);
          for (let row = 0; row < doubles.length; row++) doubles[row] = axis.toDouble(values[row]);
          this.#columns.set(place(axis), doubles);
          return doubles;
        };
        x = decode(axes.x);
        y = place(axes.y) === place(axes.x) ? x : decode(axes.y);
        await new Promise(resolve => setImmediate(resolve));
      }
      addToBuckets(buckets, x, y);
    }
  }
}

/** Whether the file says that no value of x in these rows is within the edges. Of times it says milliseconds only. */
function isOutside({ columns }: RowGroup, x: Axis, edges: Float64Array): boolean {
  const found = columns.find(({ meta_data: data }) => data?.path_in_schema[0] === x.column);
  const { min_value: min, max_value: max } = found?.meta_data?.statistics ?? {};
  if (!isNumeric(min) || !isNumeric(max)) return false;
  return x.toDouble(max) < (edges[0] as number) || x.toDouble(min) >= (edges.at(-1) as number);
}

const isNumeric = (value: unknown) => typeof value === 'number' || typeof value === 'bigint';

/** The buckets as the text of a JSON object. */
function writeBuckets({ edges, min, max, count }: Buckets, axes: Axes): string {
  const list = (texts: string[]) => `[${texts.join(',')}]`;
  const written = Array.from(edges, axes.x.write);
  const values = (given: Float64Array) =>
    list(Array.from(given, (value, i) => (count[i] === 0 ? 'null' : axes.y.write(value))));
  return `{"from":${list(written.slice(0, -1))},"to":${list(written.slice(1))},"min":${values(min)},"max":${values(max)},"count":${list(Array.from(count, String))}}`;
}
