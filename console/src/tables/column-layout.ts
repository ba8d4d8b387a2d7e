import type { PlotColumn, Value } from './plot-scale.ts';

interface Column extends PlotColumn {
  max: Value;
}

/** px. */
const WIDTHS: Record<Column['type'], number> = {
  text: 200,
  integer: 120,
  // That of the longest double, such as -1.7976931348623157e+308.
  number: 200,
  boolean: 90,
  date: 120,
  time: 150,
  timestamp: 210,
};
const LETTER = 7.5;
/** px of a cell beside its text. */
const PADDING = 26;
/** px of the buttons beside a column's name. */
const BUTTONS = 62;
/** The widest, in px, that a name makes a column. */
const WIDEST = 300;

/** Where each column begins, and at the end where the last one ends. A number that lost its end would be another one. */
export function layColumns(columns: Column[]): number[] {
  const starts = [0];
  for (const { name, type, min, max } of columns) {
    const named = Math.min(WIDEST, name.length * LETTER + BUTTONS);
    const digits = Math.max(String(min).length, String(max).length);
    const whole = type === 'integer' ? digits * LETTER + PADDING : 0;
    starts.push((starts.at(-1) ?? 0) + Math.max(WIDTHS[type], named, whole));
  }
  return starts;
}

/** The columns that are seen between two places. */
export function seenColumns(starts: number[], from: number, to: number) {
  const last = starts.length - 1;
  let first = 0;
  while (first < last - 1 && (starts[first + 1] ?? 0) <= from) first++;
  let end = first;
  while (end < last && (starts[end] ?? 0) < to) end++;
  return { first, end };
}
