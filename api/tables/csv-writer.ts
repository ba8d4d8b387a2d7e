import type { SchemaElement } from 'hyparquet/src/types.js';
import { EXACT_PARSERS, encoderOf } from './encode-value.ts';
import type { DecodedColumn, RowWriter } from './row-writer.ts';

/**
 * CSV by RFC 4180, in UTF-8, with a line of names. Values are written as in JSON, without its quotes. A missing value is
 * nothing at all, an empty text is `""`.
 */
export class CsvWriter implements RowWriter {
  readonly parsers = EXACT_PARSERS;
  readonly end = new Uint8Array();

  begin(columns: SchemaElement[]): Uint8Array {
    return Buffer.from(line(columns.map(({ name }) => quoteText(name))));
  }

  write(
    columns: DecodedColumn[],
    { from, to, room }: { from: number; to: number; room: number },
  ): { bytes: Uint8Array; next: number } {
    const encoders = columns.map(({ element }) => csvEncoderOf(element));
    const lines: string[] = [];
    let length = 0;
    let next = from;
    while (next < to && length < room) {
      const row = next++;
      const text = line(columns.map(({ values }, i) => encoders[i]?.(values[row]) ?? ''));
      length += text.length;
      lines.push(text);
    }
    return { bytes: Buffer.from(lines.join('')), next };
  }
}

/** A lone missing value is `""`: many readers skip a line without anything. */
const line = (fields: string[]) => `${fields.join(',') || '""'}\r\n`;

const quoteText = (text: string) =>
  text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

function csvEncoderOf(element: SchemaElement): (value: unknown) => string {
  const encode = encoderOf(element);
  return value => {
    if (value === null || value === undefined) return '';
    if (typeof value === 'string' && isText(element)) return quoteText(value);
    return encode(value).replaceAll('"', '');
  };
}

const isText = ({ type }: SchemaElement) => type === 'BYTE_ARRAY';
