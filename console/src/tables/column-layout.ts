import type { Column } from '../service/tables.ts';

/** px. */
const WIDTHS: Record<Column['type'], number> = {
  text: 200,
  integer: 120,
  number: 150,
  boolean: 90,
  date: 120,
  time: 150,
  timestamp: 210,
};
const LETTER = 7.5;
/** Of the buttons beside a column's name. */
const BUTTONS = 62;
const WIDEST = 300;

/** Where each column begins, and at the end where the last one ends. */
export function layColumns(columns: Column[]): number[] {
  const starts = [0];
  for (const { name, type } of columns) {
    const wanted = Math.max(WIDTHS[type], name.length * LETTER + BUTTONS);
    starts.push((starts.at(-1) ?? 0) + Math.min(WIDEST, wanted));
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
