import { open } from 'node:fs/promises';
import { TableError } from '../table/protocol.ts';

/** Limit of bytes of one record, including line breaks in quotes. */
export const MAX_RECORD_BYTES = 2_000_000;
/** Limit of columns: DuckDB holds 2,048 rows of all in memory three times: as texts, as values, as a row group. */
export const MAX_COLUMNS = 2_500;

export type LineBreak = '\n' | '\r\n' | '\r';

/** The format of a CSV file: RFC 4180, with the delimiter and the line break of its first record. */
export interface Dialect {
  delimiter: string;
  quote: string;
  /** Lines that begin with it are left out. */
  comment: string | undefined;
  lineBreak: LineBreak;
  /** Whether the second record names units. */
  hasUnits: boolean;
  /** The values of the first record. */
  first: string[];
}

/** Detects the dialect from a file's first record, which is its first line: see prepareText(). */
export async function detectDialect(
  path: string,
  {
    delimiter,
    quote = '"',
    comment,
    units: hasUnits = false,
  }: { delimiter: string; quote?: string; comment?: string; units?: boolean },
): Promise<Dialect> {
  const head = await readHead(path);
  if (head.bytes.length === 0)
    throw new TableError({
      reason: 'the file has no record',
      hint: 'Send a file with a first line.',
    });
  if (new Set([delimiter, quote, comment]).size < 3)
    throw new TableError({ reason: 'delimiter, quote and comment are not all different' });
  const { end, lineBreak } = findRecordEnd(head, { quote, delimiter });
  const first = splitRecord(head.bytes.subarray(0, end), { delimiter, quote });
  if (first.length > MAX_COLUMNS)
    throw new TableError({
      row: 1,
      reason: `there are ${first.length.toLocaleString('en')} columns, and at most ${MAX_COLUMNS.toLocaleString('en')} can be kept`,
      hint: 'Turn the table, or split it.',
    });
  return { delimiter, quote, comment, lineBreak, hasUnits, first };
}

interface Head {
  bytes: Buffer;
  /** Whether these are all of the file's bytes. */
  whole: boolean;
}

async function readHead(path: string): Promise<Head> {
  const file = await open(path);
  try {
    const bytes = Buffer.alloc(MAX_RECORD_BYTES + 16);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      length += bytesRead;
      if (bytesRead === 0 || length === bytes.length) break;
    }
    return { bytes: bytes.subarray(0, length), whole: length < bytes.length };
  } finally {
    await file.close();
  }
}

function findRecordEnd(
  { bytes, whole }: Head,
  { quote, delimiter }: { quote: string; delimiter: string },
): { end: number; lineBreak: LineBreak } {
  const code = delimiter.charCodeAt(0);
  const { end, inQuotes } = walkRecord(bytes, quote, byte => byte === code);
  if (bytes[end] === 10) return { end, lineBreak: '\n' };
  if (bytes[end] === 13) return { end, lineBreak: bytes[end + 1] === 10 ? '\r\n' : '\r' };
  if (!whole)
    throw new TableError({
      row: 1,
      reason: `the row is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`,
      hint: 'Look for a quote that is never closed, or for a file without line breaks.',
    });
  if (inQuotes) throw new TableError({ row: 1, reason: 'a quote is never closed' });
  return { end, lineBreak: '\n' };
}

/** Finds the first record's end: its line break, or the end of the bytes. A quote counts only at a value's start. */
export function walkRecord(
  bytes: Buffer,
  quote: string,
  isDelimiter: (byte: number) => boolean,
): { end: number; inQuotes: boolean } {
  const q = quote.charCodeAt(0);
  const limit = Math.min(bytes.length, MAX_RECORD_BYTES);
  let inQuotes = false;
  let isStart = true;
  for (let i = 0; i < limit; i++) {
    const byte = bytes[i] ?? 0;
    if (inQuotes) {
      if (byte !== q) continue;
      if (bytes[i + 1] === q) i++;
      else inQuotes = false;
    } else if (byte === 10 || byte === 13) return { end: i, inQuotes };
    else if (byte === q && isStart) {
      inQuotes = true;
      isStart = false;
    } else isStart = isDelimiter(byte);
  }
  return { end: limit, inQuotes };
}

/** Splits a record into its values. scanRecords() reports what is wrong with them. */
export function splitRecord(
  bytes: Buffer,
  { delimiter, quote }: { delimiter: string; quote: string },
): string[] {
  const text = bytes.toString('utf8');
  const values: string[] = [];
  let value = '';
  let inQuotes = false;
  let from = 0;
  for (let i = 0; i <= text.length; i++) {
    const char = text[i];
    if (inQuotes && char !== undefined) {
      if (char !== quote) continue;
      value += text.slice(from, i);
      inQuotes = false;
      from = i + 1;
      // A doubled quote is one quote.
      if (text[i + 1] === quote) {
        value += quote;
        inQuotes = true;
        i++;
        from = i + 1;
      }
    } else if (char === quote && from === i && value === '') {
      inQuotes = true;
      from = i + 1;
    } else if (char === delimiter || char === undefined) {
      values.push(value + text.slice(from, i));
      value = '';
      from = i + 1;
    }
  }
  return values;
}
