import {
  Bool,
  type DataType,
  DateDay,
  Field,
  Float64,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimeMicrosecond,
  TimestampMicrosecond,
  tableToIPC,
  Utf8,
} from 'apache-arrow';
import type { SchemaElement } from 'hyparquet/src/types.js';
import { RAW_PARSERS } from './encode-value.ts';
import type { Values } from './row-groups.ts';
import type { DecodedColumn, RowWriter } from './row-writer.ts';

/** The end in the IPC streaming format: a continuation marker and a length of 0. */
const END_OF_STREAM = new Uint8Array([255, 255, 255, 255, 0, 0, 0, 0]);

/** The streaming format of Apache Arrow: a schema, then a record batch for each row group or part of one. */
export class ArrowWriter implements RowWriter {
  readonly parsers = RAW_PARSERS;
  readonly end = END_OF_STREAM;

  begin(columns: SchemaElement[]): Uint8Array {
    const stream = tableToIPC(new Table(schemaOf(columns)), 'stream');
    return stream.subarray(0, -END_OF_STREAM.length);
  }

  write(
    columns: DecodedColumn[],
    { from, to, room }: { from: number; to: number; room: number },
  ): { bytes: Uint8Array; next: number } {
    const next = rowsThatFit(columns, { from, to, room });
    const elements = columns.map(({ element }) => element);
    const children = columns.map(({ element, values }) =>
      toArrow(typeOf(element), values, { from, to: next }),
    );
    const schema = schemaOf(elements);
    const data = makeData({ type: new Struct(schema.fields), length: next - from, children });
    const stream = tableToIPC(new Table([new RecordBatch(schema, data)]), 'stream');
    // Only the batch: a stream of many has one schema and one end.
    return {
      bytes: stream.subarray(this.begin(elements).length, -END_OF_STREAM.length),
      next,
    };
  }
}

/** The row before which the values reach `room` bytes; at least one row is written. */
function rowsThatFit(
  columns: DecodedColumn[],
  { from, to, room }: { from: number; to: number; room: number },
): number {
  const texts = columns.filter(({ element }) => typeOf(element) instanceof Utf8);
  if (texts.length === 0)
    return Math.min(to, from + Math.max(1, Math.ceil(room / (8 * columns.length))));
  let bytes = 0;
  for (let row = from; row < to; row++) {
    bytes += 8 * columns.length;
    for (const { values } of texts) bytes += Buffer.byteLength(String(values[row] ?? ''));
    if (bytes >= room) return row + 1;
  }
  return to;
}

const schemaOf = (columns: SchemaElement[]) =>
  new Schema(columns.map(element => new Field(element.name, typeOf(element), true)));

function typeOf({
  type,
  logical_type: logical,
  converted_type: converted,
}: SchemaElement): DataType {
  if (logical?.type === 'TIMESTAMP')
    return new TimestampMicrosecond(logical.isAdjustedToUTC ? 'UTC' : null);
  if (logical?.type === 'TIME' || converted === 'TIME_MICROS') return new TimeMicrosecond();
  if (converted === 'DATE') return new DateDay();
  switch (type) {
    case 'BOOLEAN':
      return new Bool();
    case 'INT32':
    case 'INT64':
      return new Int64();
    case 'FLOAT':
    case 'DOUBLE':
      return new Float64();
    default:
      return new Utf8();
  }
}

/** A vector's buffers, as the format lays them out: exact, where apache-arrow's builders take a Date for a timestamp. */
function toArrow(type: DataType, values: Values, { from, to }: { from: number; to: number }) {
  const length = to - from;
  const common = { length, ...validity(values, { from, to }) };
  if (type instanceof Utf8) return makeData({ type, ...common, ...texts(values, { from, to }) });
  if (type instanceof Bool)
    return makeData({ type, ...common, data: bitmap(length, i => values[from + i] === true) });
  if (type instanceof Float64)
    return makeData({
      type,
      ...common,
      data: copy(new Float64Array(length), values, from, Number),
    });
  if (type instanceof DateDay)
    return makeData({ type, ...common, data: copy(new Int32Array(length), values, from, Number) });
  const data = copy(new BigInt64Array(length), values, from, value => BigInt(value as bigint));
  return makeData({ type: type as Int64, ...common, data });
}

/** Copies what is not missing; the rest stays 0. A loop: `from()` of a typed array takes ten times as long. */
function copy<T extends number | bigint, Target extends { length: number; [at: number]: T }>(
  target: Target,
  values: Values,
  from: number,
  convert: (value: unknown) => T,
): Target {
  for (let i = 0; i < target.length; i++) {
    const value = values[from + i];
    if (value !== null && value !== undefined) target[i] = convert(value);
  }
  return target;
}

/** A bit for each value, 0 where it is missing. */
function validity(
  values: Values,
  { from, to }: { from: number; to: number },
): { nullBitmap: Uint8Array; nullCount: number } {
  let nullCount = 0;
  const nullBitmap = bitmap(to - from, i => {
    const isThere = values[from + i] !== null && values[from + i] !== undefined;
    if (!isThere) nullCount++;
    return isThere;
  });
  return { nullBitmap, nullCount };
}

function bitmap(length: number, isSet: (i: number) => boolean): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(length / 8));
  for (let i = 0; i < length; i++)
    if (isSet(i)) bytes[i >> 3] = (bytes[i >> 3] as number) | (1 << (i & 7));
  return bytes;
}

function texts(
  values: Values,
  { from, to }: { from: number; to: number },
): { valueOffsets: Int32Array; data: Uint8Array } {
  const pieces: Buffer[] = [];
  const valueOffsets = new Int32Array(to - from + 1);
  let end = 0;
  for (let row = from; row < to; row++) {
    const piece = Buffer.from(String(values[row] ?? ''));
    pieces.push(piece);
    end += piece.length;
    valueOffsets[row - from + 1] = end;
  }
  return { valueOffsets, data: Buffer.concat(pieces) };
}
