import type { PythonValue } from '../../../shared/arrays/npy-header.ts';
import { quoteCell, type TypedColumn } from '../cells/make-typed-table.ts';
import { MAX_RECORD_BYTES } from '../csv/dialect.ts';
import { TableError } from '../table/protocol.ts';

/** A value of a record, as NumPy lays it out. */
export interface Field extends TypedColumn {
  /** NumPy's, such as '<f8'. */
  code: string;
  size: number;
  /** The field's offset in the record. */
  at: number;
  /** The value in CSV. */
  write(record: Buffer, at: number, row: number): string;
}

const INTEGERS = new Set(['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8']);
const NOT_A_TIME = -(2n ** 63n);
const MICROS_PER_DAY = 86_400_000_000n;
const YEARS = [-62_135_596_800_000_000n, 253_402_300_799_999_999n] as const;
/** Microseconds of NumPy's units of time; 0 where a unit is less than one. */
const UNITS: Record<string, bigint> = {
  D: MICROS_PER_DAY,
  h: 3_600_000_000n,
  m: 60_000_000n,
  s: 1_000_000n,
  ms: 1_000n,
  us: 1n,
  ns: 0n,
};

/** The fields of a record, or of a plain value. Throws TableError for types that no column has. */
export function readFields(descr: PythonValue): { fields: Field[]; size: number } {
  if (typeof descr === 'string') {
    const field = { name: 'value', at: 0, ...fieldOf(descr, 'value') };
    return { fields: [field], size: field.size };
  }
  const fields: Field[] = [];
  let size = 0;
  for (const one of Array.isArray(descr) ? descr : [descr]) {
    const [named, code, shape] = Array.isArray(one) ? one : [];
    // A title stands before the name.
    const name = String(Array.isArray(named) ? named[1] : named);
    if (typeof code !== 'string' || shape !== undefined)
      throw new TableError({
        column: name,
        reason: 'each of its values is an array or a record',
        hint: 'Write its parts as fields of their own.',
      });
    const padding = /^\|V(\d+)$/.exec(code);
    // Aligned records have nameless bytes between their fields.
    if (name === '' && padding) size += Number(padding[1]);
    else {
      fields.push({ name, at: size, ...fieldOf(code, name) });
      size += (fields.at(-1) as Field).size;
    }
  }
  return { fields, size };
}

/** A field by its code. Throws TableError for one that no column is of. */
export function fieldOf(code: string, column: string): Omit<Field, 'name' | 'at'> {
  const [, order = '', kind = '', digits = '', unit] =
    /^([<>|=])([a-zA-Z])(\d*)(?:\[(\w+)\])?$/.exec(code) ?? [];
  const isBig = order === '>';
  const size = Number(digits) * (kind === 'U' ? 4 : 1);
  const base = { code, size };
  const whole = `${kind}${digits}`;
  if (size > 4 * MAX_RECORD_BYTES) throw unknown(code, column);
  if (whole === 'b1')
    return { ...base, type: 'BOOLEAN', write: (bytes, at) => (bytes[at] ? 'true' : 'false') };
  if (INTEGERS.has(whole)) {
    const read = integerReader(whole, isBig);
    return { ...base, type: 'BIGINT', write: (bytes, at) => String(read(bytes, at)) };
  }
  if (whole === 'f2' || whole === 'f4' || whole === 'f8') {
    const read = floatReader(size, isBig);
    return { ...base, type: 'DOUBLE', write: (bytes, at) => writeFloat(read(bytes, at)) };
  }
  if (kind === 'S' && size > 0)
    return {
      ...base,
      type: 'VARCHAR',
      write: (bytes, at, row) =>
        quoteCell(readBytes(bytes, { at, size, row, column }), { row, column }),
    };
  if (kind === 'U' && size > 0)
    return {
      ...base,
      type: 'VARCHAR',
      write: (bytes, at, row) =>
        quoteCell(readPoints(bytes, { at, size, row, column, isBig }), { row, column }),
    };
  const micros = whole === 'M8' && unit !== undefined ? UNITS[unit] : undefined;
  if (micros !== undefined) {
    const read = integerReader('i8', isBig);
    return {
      ...base,
      type: unit === 'D' ? 'DATE' : 'TIMESTAMP',
      write: (bytes, at, row) => writeTime(BigInt(read(bytes, at)), { micros, row, column }),
    };
  }
  throw unknown(code, column);
}

const unknown = (code: string, column: string) =>
  new TableError({
    column,
    reason: `its values are of NumPy's type ${code.slice(0, 50)}, which no column of a table is`,
    hint: 'Save numbers, booleans, texts or datetime64 from days to nanoseconds; of complex numbers their parts.',
  });

type Reader<T> = (bytes: Buffer, at: number) => T;

export function integerReader(whole: string, isBig: boolean): Reader<number | bigint> {
  const size = Number(whole.slice(1));
  const isSigned = whole.startsWith('i');
  if (size === 8) {
    if (isSigned) return isBig ? (b, at) => b.readBigInt64BE(at) : (b, at) => b.readBigInt64LE(at);
    return isBig ? (b, at) => b.readBigUInt64BE(at) : (b, at) => b.readBigUInt64LE(at);
  }
  if (isSigned) return isBig ? (b, at) => b.readIntBE(at, size) : (b, at) => b.readIntLE(at, size);
  return isBig ? (b, at) => b.readUIntBE(at, size) : (b, at) => b.readUIntLE(at, size);
}

export function floatReader(size: number, isBig: boolean): Reader<number> {
  if (size === 8) return isBig ? (b, at) => b.readDoubleBE(at) : (b, at) => b.readDoubleLE(at);
  if (size === 4) return isBig ? (b, at) => b.readFloatBE(at) : (b, at) => b.readFloatLE(at);
  return isBig ? (b, at) => halfOf(b.readUInt16BE(at)) : (b, at) => halfOf(b.readUInt16LE(at));
}

/** A double from the bits of IEEE 754's binary16. */
function halfOf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The shortest text of a double. */
const writeFloat = (value: number): string => (Object.is(value, -0) ? '-0' : String(value));

interface CellBytes {
  at: number;
  size: number;
  row: number;
  column: string;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function readBytes(bytes: Buffer, { at, size, row, column }: CellBytes): string {
  let end = at + size;
  while (end > at && bytes[end - 1] === 0) end--;
  try {
    return utf8.decode(bytes.subarray(at, end));
  } catch {
    throw new TableError({ row, column, reason: 'its bytes are no UTF-8' });
  }
}

function readPoints(
  bytes: Buffer,
  { at, size, row, column, isBig }: CellBytes & { isBig: boolean },
): string {
  const points: number[] = [];
  for (let i = at; i < at + size; i += 4)
    points.push(isBig ? bytes.readUInt32BE(i) : bytes.readUInt32LE(i));
  while (points.at(-1) === 0) points.pop();
  let text = '';
  for (const point of points) {
    if (point > 0x10ffff) throw new TableError({ row, column, reason: 'it is not Unicode' });
    text += String.fromCodePoint(point);
  }
  return text;
}

/** Days, or microseconds, since 1970; nothing for NaT. */
function writeTime(
  value: bigint,
  { micros, row, column }: { micros: bigint; row: number; column: string },
): string {
  if (value === NOT_A_TIME) return '';
  const hint = 'Correct the value, or save the column as integers or texts.';
  if (micros === 0n && value % 1_000n !== 0n)
    throw new TableError({
      row,
      column,
      hint,
      reason: 'it has nanoseconds, and a table holds microseconds',
    });
  const whole = micros === 0n ? value / 1_000n : value * micros;
  if (whole < YEARS[0] || whole > YEARS[1])
    throw new TableError({ row, column, hint, reason: 'it is outside of the years 1 to 9999' });
  return String(micros === MICROS_PER_DAY ? value : whole);
}
