import { printableCell } from './printable.ts';

/** The widest column that is not the last one. */
const WIDEST = 40;

/** A table for people: a head, and columns as wide as their cells; the last one is cut at `width`, where that is known. */
export function formatTable(head: string[], rows: string[][], width?: number): string {
  const cells = [head, ...rows].map(row => row.map(printableCell));
  // Not Math.max(...): a call takes no 200,000 arguments.
  const widths = head.map((_name, n) =>
    cells.reduce((most, row) => Math.min(WIDEST, Math.max(most, [...(row[n] ?? '')].length)), 0),
  );
  return cells
    .map(row => {
      const line = row
        .map((cell, n) => (n === head.length - 1 ? cell : pad(cell, widths[n] ?? 0)))
        .join('  ');
      return `${width === undefined ? line : cut(line, width)}`.trimEnd();
    })
    .map(line => `${line}\n`)
    .join('');
}

const pad = (text: string, width: number) =>
  cut(text, width) + ' '.repeat(width - Math.min(width, [...text].length));

function cut(text: string, width: number): string {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join('')}…`;
}

/** How long ago a token was used, of which the service keeps the hour: nobody used it before it was made. */
export function formatUsed(used: string, created: string, now = Date.now()): string {
  if (now - Date.parse(used) < 3_600_000) return '<1h';
  return formatAge(used < created ? created : used, now);
}

/** How long ago: `5s`, `12m`, `3h`, `4d`. */
export function formatAge(time: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
