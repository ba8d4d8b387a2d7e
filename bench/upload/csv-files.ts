import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';

export interface CsvShape {
  name: string;
  columns: string[];
  /** The values of a row, from 0, as text without quotes and line breaks. */
  row: (n: number) => string;
}

const MIXED = 0x9e3779b1;
/** As good as random, and always the same. */
const mix = (n: number) => Math.imul(n + 1, MIXED) >>> 0;
const NAMES = ['inlet', 'outlet', 'wall', 'probe'];

/** About 20 bytes a row. */
export const TALL: CsvShape = {
  name: 'ten million rows',
  columns: ['step', 'residual', 'where'],
  row: n => `${n},${(mix(n) % 9_999) / 1_000},${NAMES[mix(n) % NAMES.length]}`,
};

const WIDE_COLUMNS = 300;
/** Integers, numbers and names in turn. */
export const WIDE: CsvShape = {
  name: '300 columns',
  columns: Array.from({ length: WIDE_COLUMNS }, (_, i) => `column ${i}`),
  row: n =>
    Array.from({ length: WIDE_COLUMNS }, (_, i) => {
      const value = mix(n * WIDE_COLUMNS + i);
      if (i % 3 === 0) return value;
      return i % 3 === 1 ? value / 1_024 : NAMES[value % NAMES.length];
    }).join(),
};

const AT_ONCE = 1 << 20;

/** Writes rows until the file has so many bytes. Returns their number. */
export async function writeCsv(path: string, shape: CsvShape, size: number): Promise<number> {
  const file = createWriteStream(path);
  let text = `${shape.columns.join()}\n`;
  let rows = 0;
  for (let written = 0; written + text.length < size; rows++) {
    text += `${shape.row(rows)}\n`;
    if (text.length < AT_ONCE) continue;
    written += text.length;
    if (!file.write(text)) await once(file, 'drain');
    text = '';
  }
  file.end(text);
  await finished(file);
  return rows;
}
