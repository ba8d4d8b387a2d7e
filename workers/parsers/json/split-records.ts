import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { MAX_RECORD_BYTES } from '../csv/dialect.ts';
import { TableError } from '../table/protocol.ts';

export interface RecordText {
  text: string;
  /** The line in which the record begins, from 1. */
  row: number;
}

const LF = 10;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = new Set(Buffer.from('[{'));
const CLOSE = new Set(Buffer.from(']}'));
const BLANK = new Set(Buffer.from(' \t\r\n'));
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

const bytesOf = (path: string) =>
  createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>;

/** The lines of a file that are not blank. */
export async function* splitLines(path: string): AsyncGenerator<RecordText> {
  let row = 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of bytesOf(path)) {
    rest = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
    let at = 0;
    for (let end = rest.indexOf(LF); end >= 0; end = rest.indexOf(LF, at)) {
      const text = lineOf(rest.subarray(at, end), ++row);
      if (text.trim() !== '') yield { text, row };
      at = end + 1;
    }
    rest = rest.subarray(at);
    checkLength(rest.length, row + 1);
  }
  const text = lineOf(rest, ++row);
  if (text.trim() !== '') yield { text, row };
}

/** A mark at the beginning of the file is no part of its first line. */
function lineOf(bytes: Buffer, row: number): string {
  const text = toText(bytes, row);
  return row === 1 && text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** Splits a file that is an array into its elements. Checks that they are separated, not what is in them. */
export async function* splitElements(path: string): AsyncGenerator<RecordText> {
  let line = 1;
  /** Where the element begins; undefined before its first byte. */
  let begun: number | undefined;
  let isFirst = true;
  let depth = 0;
  let inString = false;
  let isEscaped = false;
  let isEnded = false;
  let rest: Buffer = Buffer.alloc(0);
  const refuse = (reason: string): never => {
    throw new TableError({
      row: begun ?? line,
      reason,
      hint: 'Send an array of records: [{…}, {…}].',
    });
  };
  for await (const piece of bytesOf(path)) {
    const scanned = rest.length;
    const bytes: Buffer = scanned > 0 ? Buffer.concat([rest, piece]) : piece;
    let from = 0;
    for (let i = scanned; i < bytes.length; i++) {
      const byte = bytes[i] as number;
      if (byte === LF) line++;
      else if (depth > 0 && !BLANK.has(byte)) begun ??= line;
      if (inString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) inString = false;
      } else if (byte === QUOTE) {
        if (depth === 0) refuse('the file is not one array');
        inString = true;
      } else if (OPEN.has(byte)) {
        if (++depth === 1) {
          if (isEnded || toText(bytes.subarray(from, i), line).trim() !== '' || byte !== 0x5b)
            refuse('the file is not one array');
          from = i + 1;
        }
      } else if ((byte === 0x2c && depth === 1) || (CLOSE.has(byte) && --depth === 0)) {
        const row = begun ?? line;
        const text = toText(bytes.subarray(from, i), row);
        isEnded = depth === 0;
        // An empty array has no element.
        if (text.trim() !== '' || !isFirst || !isEnded) yield { text, row };
        isFirst = false;
        begun = undefined;
        from = i + 1;
      } else if (depth === 0 && !BLANK.has(byte) && !(isFirst && BYTE_ORDER_MARK.includes(byte)))
        refuse('the file is not one array');
      if (depth < 0) refuse('a bracket is closed that was never opened');
    }
    rest = bytes.subarray(from);
    checkLength(rest.length, begun ?? line);
  }
  if (!isEnded) refuse('the array is never closed');
}

function toText(bytes: Buffer, row: number): string {
  checkLength(bytes.length, row);
  if (!isUtf8(bytes)) throw new TableError({ row, reason: 'there are bytes that are not UTF-8' });
  return bytes.toString('utf8');
}

function checkLength(length: number, row: number): void {
  if (length <= MAX_RECORD_BYTES) return;
  throw new TableError({
    row,
    reason: `the record is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`,
  });
}
