import { visit } from 'jsonc-parser';
import type { Cell } from '../cells/make-cell-table.ts';
import { TableError } from '../table/protocol.ts';

/** As Python writes numbers that JSON does not have. */
const NO_NUMBER = /[:,[]\s*-?(?:NaN|Infinity)\b/;

export type JsonRecord = Map<string, Cell>;

/**
 * Reads an object with its values as written: numbers keep all digits, nested objects and arrays stay texts.
 * JSON.parse() is strict, but only jsonc-parser, which is not, tells where each value is.
 */
export function parseRecord(text: string, row: number): JsonRecord {
  const refuse = (reason: string, hint?: string): never => {
    throw new TableError({ row, reason, ...(hint !== undefined && { hint }) });
  };
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== 'object' || Array.isArray(value))
      return refuse('it is not a record: an object in braces');
  } catch (error) {
    if (error instanceof TableError) throw error;
    refuse(
      `it is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : error}`,
      NO_NUMBER.test(text)
        ? 'JSON has neither NaN nor Infinity: write null for them, or send the table as CSV or Parquet.'
        : undefined,
    );
  }
  const record: JsonRecord = new Map();
  let name = '';
  let depth = 0;
  let nestedAt = 0;
  const put = (cell: Cell) => {
    if (record.has(name)) refuse(`${JSON.stringify(name.slice(0, 100))} is there twice`);
    if (!isStorable(name) || (cell && !isStorable(cell.text)))
      refuse(`${JSON.stringify(name.slice(0, 100))} has a NUL character or half a surrogate pair`);
    record.set(name, cell);
  };
  const open = (offset: number) => {
    if (++depth === 2) nestedAt = offset;
  };
  const close = (offset: number) => {
    if (--depth === 1) put({ kind: 'text', text: text.slice(nestedAt, offset + 1) });
  };
  try {
    visit(text, {
      onObjectBegin: open,
      onObjectEnd: close,
      onArrayBegin: open,
      onArrayEnd: close,
      onObjectProperty: property => {
        if (depth === 1) name = property;
      },
      onLiteralValue: (value: unknown, offset, length) => {
        if (depth === 1) put(toCell(value, text.slice(offset, offset + length)));
      },
    });
  } catch (error) {
    if (error instanceof RangeError) refuse('it is nested too deeply');
    throw error;
  }
  return record;
}

function toCell(value: unknown, source: string): Cell {
  if (value === null) return null;
  if (typeof value === 'string') return { kind: 'text', text: value };
  return { kind: typeof value === 'boolean' ? 'boolean' : 'number', text: source };
}

const isStorable = (text: string) => !/[\0\p{Surrogate}]/u.test(text);
