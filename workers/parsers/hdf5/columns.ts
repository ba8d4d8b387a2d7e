import type { Metadata } from 'h5wasm';
import { quoteCell, type TypedColumn } from '../cells/make-typed-table.ts';
import { fieldOf } from '../npy/fields.ts';
import { TableError } from '../table/protocol.ts';

/** HDF5's classes of types. */
const [INTEGER, FLOAT, STRING, COMPOUND, ENUM] = [0, 1, 3, 6, 8];
const [NULL_TERMINATED, SPACE_PADDED] = [0, 2];

/** A value of a record, as HDF5 lays it out in memory. */
export interface HdfField extends TypedColumn {
  at: number;
  size: number;
  /** NumPy's code, of numbers and booleans. */
  code?: string;
  isVariable: boolean;
  write(bytes: Buffer, at: number, row: number): string;
}

/** NumPy's code of numbers and booleans, little-endian; undefined for other types. */
export function codeOf(metadata: Metadata): string | undefined {
  const { type, size, signed, vlen, enum_type, littleEndian } = metadata;
  // HDF5 turns numbers while it reads them, but no enumerations.
  if (vlen || (type === ENUM && !littleEndian)) return undefined;
  const members = enum_type?.members;
  // As h5py writes booleans.
  if (type === ENUM && size === 1 && members?.FALSE === 0 && members.TRUE === 1) return '|b1';
  if (type === INTEGER || (type === ENUM && enum_type?.type === INTEGER))
    return [1, 2, 4, 8].includes(size)
      ? `${size === 1 ? '|' : '<'}${signed ? 'i' : 'u'}${size}`
      : undefined;
  // Floats of 2 bytes have two formats, which h5wasm does not tell apart.
  return type === FLOAT && (size === 4 || size === 8) ? `<f${size}` : undefined;
}

/** The fields of a record type, or the value itself; undefined if a field fits no column type. */
export function fieldsOf(metadata: Metadata, name: string): HdfField[] | undefined {
  if (metadata.type !== COMPOUND) {
    const field = one(metadata, name, 0);
    return field && [field];
  }
  const members = metadata.compound_type?.members ?? [];
  const isMixed = hasBothOrders(members);
  const fields = members.map(member => {
    if (member.vlen || member.type === COMPOUND) return undefined;
    const field = one(
      isMixed ? { ...member, littleEndian: true } : member,
      member.name,
      member.offset,
    );
    return field && isMixed && !member.littleEndian ? asBigEndian(field) : field;
  });
  return fields.length > 0 && fields.every(field => field !== undefined) ? fields : undefined;
}

/** HDF5 converts no records that mix byte orders; records of one order it makes little-endian. */
function hasBothOrders(members: Metadata[]): boolean {
  const orders = members.filter(({ type }) => type !== STRING);
  return new Set(orders.map(({ littleEndian }) => littleEndian)).size > 1;
}

function asBigEndian(field: HdfField): HdfField {
  if (!field.code?.startsWith('<')) return field;
  const code = field.code.replace('<', '>');
  return { ...field, ...fieldOf(code, field.name), code };
}

export const isText = ({ type }: Metadata) => type === STRING;
export const isRecord = ({ type }: Metadata) => type === COMPOUND;

function one(metadata: Metadata, name: string, at: number): HdfField | undefined {
  const { type, size, vlen, strpad } = metadata;
  const code = codeOf(metadata);
  if (code) return { ...fieldOf(code, name), code, name, at, isVariable: false };
  if (type !== STRING) return undefined;
  const base = { name, at, size, type: 'VARCHAR', isVariable: vlen } as const;
  if (vlen)
    return {
      ...base,
      write: (bytes, _at, row) => {
        const place = { row, column: name };
        return quoteCell(decode(bytes, place), place);
      },
    };
  return {
    ...base,
    write: (bytes, from, row) => {
      const value = bytes.subarray(from, from + size);
      let end = strpad === NULL_TERMINATED ? value.indexOf(0) : size;
      if (end < 0) end = size;
      // A NUL before the end of the padding is a part of the text.
      while (end > 0 && value[end - 1] === 0) end--;
      const place = { row, column: name };
      const text = decode(value.subarray(0, end), place);
      return quoteCell(strpad === SPACE_PADDED ? text.replace(/ +$/, '') : text, place);
    },
  };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array, place: { row: number; column: string }): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new TableError({ ...place, reason: 'its bytes are no UTF-8' });
  }
}
