import { roundTo } from '../ui/numbers.ts';

/** As the service tells values, columns and series, so that a plot is tested without it. */
export type Value = string | number | boolean | null;

export interface PlotColumn {
  name: string;
  type: 'boolean' | 'integer' | 'number' | 'date' | 'time' | 'timestamp' | 'text';
  min: Value;
  /** Present where integers pass 2^53: values are texts. */
  exact?: true;
}

export interface Buckets {
  from: Value[];
  to: Value[];
  min: Value[];
  max: Value[];
  count: number[];
}

/** How the values of a column stand along an axis. */
export interface Scale {
  toNumber: (value: Value | undefined) => number;
  format: (value: Value | undefined) => string;
  /** Like format(), but rounded: for the ends of an axis. */
  round: (value: Value | undefined) => string;
}

const rounded = roundTo(6);
const numeric = roundTo(10);
const TIMES: PlotColumn['type'][] = ['date', 'time', 'timestamp'];

/** Only these are plotted. */
export const isPlottable = ({ type }: PlotColumn): boolean => type !== 'text' && type !== 'boolean';

export function scaleOf({ type, exact, min }: PlotColumn): Scale {
  const asItIs = (value: Value | undefined) => String(value ?? '');
  // Doubles tell the distances from the least value, not times of microseconds or integers past 2^53.
  if (TIMES.includes(type)) {
    const least = microsOf(min) ?? 0n;
    return { toNumber: value => distance(microsOf(value), least), format: asItIs, round: asItIs };
  }
  if (exact)
    return {
      toNumber: value => Number(BigInt(String(value ?? min)) - BigInt(String(min))),
      format: asItIs,
      round: asItIs,
    };
  const by = (tell: (value: number) => string) => (value: Value | undefined) =>
    typeof value === 'number' ? tell(value) : asItIs(value);
  return { toNumber: Number, format: by(numeric), round: by(rounded) };
}

const distance = (micros: bigint | undefined, least: bigint): number =>
  micros === undefined ? Number.NaN : Number(micros - least);

/**
 * Microseconds since 1970, or since midnight for a time of day; none for what is no time. A value without a zone counts as
 * UTC.
 */
function microsOf(value: Value | undefined): bigint | undefined {
  const [text, fraction] = splitFraction(String(value ?? '').replace(' ', 'T'));
  const millis = Date.parse(inUtc(text));
  return Number.isNaN(millis)
    ? undefined
    : BigInt(millis) * 1_000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

/** A time in whole seconds, and the digits of the rest, of which Date.parse() reads three. */
function splitFraction(text: string): [string, string] {
  const fraction = /\.(\d+)/.exec(text);
  return fraction ? [text.replace(fraction[0], ''), fraction[1] ?? ''] : [text, ''];
}

function inUtc(text: string): string {
  if (/^\d\d:/.test(text)) return `1970-01-01T${text}Z`;
  return /T.*(?:Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes('T') ? text : `${text}Z`;
}

export interface Drawing {
  /** A path in a square of `buckets` times 1, upside down as pictures are. */
  line: string;
  /** Buckets that hold one value, where they are few. */
  dots: { x: number; y: number }[];
  least: Value | undefined;
  greatest: Value | undefined;
}

/** With more filled buckets the line alone is drawn. */
const DOTS = 200;

/** Draws a line through the least and the greatest value of each bucket, so that no peak is lost. */
export function drawSeries({ buckets }: { buckets: Buckets }, { toNumber }: Scale): Drawing {
  const { min, max, count } = buckets;
  const filled = count.flatMap((n, at) => (n > 0 ? [at] : []));
  const least = extreme(
    filled.map(at => min[at]),
    toNumber,
    -1,
  );
  const greatest = extreme(
    filled.map(at => max[at]),
    toNumber,
    1,
  );
  const bottom = toNumber(least);
  const height = toNumber(greatest) - bottom;
  const y = (value: Value | undefined) =>
    height === 0 ? 0.5 : 1 - (toNumber(value) - bottom) / height;
  let last = 0.5;
  const steps = filled.map((at, n) => {
    const ends = [y(min[at]), y(max[at])];
    // The nearer end first, so that the line between two buckets is short.
    if (Math.abs((ends[0] ?? 0) - last) > Math.abs((ends[1] ?? 0) - last)) ends.reverse();
    last = ends[1] ?? 0;
    const x = at + 0.5;
    const to = ends[0] === ends[1] ? '' : `L${x} ${ends[1]?.toFixed(5)}`;
    return `${n === 0 ? 'M' : 'L'}${x} ${ends[0]?.toFixed(5)}${to}`;
  });
  const dots = filled.length > DOTS ? [] : filled.map(at => ({ x: at + 0.5, y: y(max[at]) }));
  return { line: steps.join(''), dots, least, greatest };
}

/** The nearest bucket that holds a value; `at` itself where none does. */
export function nearestFilled({ buckets: { count } }: { buckets: Buckets }, at: number): number {
  for (let by = 0; by < count.length; by++) {
    if ((count[at + by] ?? 0) > 0) return at + by;
    if ((count[at - by] ?? 0) > 0) return at - by;
  }
  return at;
}

function extreme(
  values: (Value | undefined)[],
  toNumber: Scale['toNumber'],
  sign: 1 | -1,
): Value | undefined {
  let found: Value | undefined;
  for (const value of values)
    if (found === undefined || sign * (toNumber(value) - toNumber(found)) > 0) found = value;
  return found;
}
