import type { Metadata } from 'h5wasm';
import { quoteCell, type TypedColumn } from '../cells/make-typed-table.ts';
import { MAX_COLUMNS } from '../csv/dialect.ts';
import { fieldOf } from '../npy/fields.ts';
import { TableError } from '../table/protocol.ts';

/** HDF5's classes of types. */
const [INTEGER, FLOAT, TIME, STRING, BITS, OPAQUE] = [0, 1, 2, 3, 4, 5];
const [COMPOUND, REFERENCE, ENUM, VARIABLE, ARRAY] = [6, 7, 8, 9, 10];
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

interface Fields {
  fields: HdfField[];
  /** Why no column holds the values, or those of a field. */
  unread: { why: string; field?: string }[];
}

/** The fields of a record type, or the value itself. `plain` is of its members. */
export function fieldsOf(metadata: Metadata, name: string, plain: boolean[]): Fields {
  if (metadata.type !== COMPOUND) {
    const field = one(metadata, name, 0);
    if (field && plain[0]) return { fields: [field], unread: [] };
    return { fields: [], unread: [{ why: field ? UNUSUAL : noColumn(metadata) }] };
  }
  const orders = new Set(ordersOf(metadata));
  // HDF5 converts no records that mix byte orders; records of one order it makes little-endian.
  const isMixed = orders.size > 1;
  if (!isMixed && orders.has(false) && hasEnumeration(metadata))
    return { fields: [], unread: [{ why: 'one of its fields is a big-endian enumeration' }] };
  const found: Fields = { fields: [], unread: [] };
  for (const [i, member] of (metadata.compound_type?.members ?? []).entries()) {
    const leaves = leavesOf({ metadata: member, name: member.name, at: member.offset });
    for (const leaf of leaves) {
      const field = fieldOfLeaf(leaf, isMixed);
      if (field && plain[i]) found.fields.push(field);
      else found.unread.push({ why: field ? UNUSUAL : noColumn(leaf.metadata), field: leaf.name });
    }
  }
  return found;
}

const UNUSUAL =
  'its numbers are laid out in bits in an unusual way (precision, offset, VAX, …), which is not read here';
const noColumn = (metadata: Metadata) =>
  `its values are of a type that no column of a table is: ${describeType(metadata)}`;

/** Values that lie within a record, at an offset. */
interface Leaf {
  metadata: Metadata;
  name: string;
  at: number;
}

/** What a record within a record holds, and each value of an array, if all of them can be columns. */
function leavesOf(member: Leaf): Leaf[] {
  const { metadata, name, at } = member;
  if (countLeaves(metadata) > MAX_COLUMNS) return [member];
  const { type, array_type: element } = metadata;
  if (type === COMPOUND)
    return (metadata.compound_type?.members ?? []).flatMap(one =>
      leavesOf({ metadata: one, name: `${name}.${one.name}`, at: at + one.offset }),
    );
  if (type !== ARRAY || !element) return [member];
  const leaves = indexesOf(element.shape ?? []).flatMap((index, i) =>
    leavesOf({ metadata: element, name: `${name}${index}`, at: at + i * element.size }),
  );
  return leaves.every(leaf => fieldOfLeaf(leaf, false)) ? leaves : [member];
}

function countLeaves({ type, compound_type, array_type }: Metadata): number {
  if (type === COMPOUND)
    return (compound_type?.members ?? []).reduce((sum, one) => sum + countLeaves(one), 0);
  return type === ARRAY && array_type ? array_type.total_size * countLeaves(array_type) : 1;
}

/** `[0][0]`, `[0][1]`, …, in the order of the values. */
const indexesOf = (shape: number[]): string[] =>
  shape.reduce(
    (before, length) => before.flatMap(index => Array.from({ length }, (_, i) => `${index}[${i}]`)),
    [''],
  );

/** Whether the numbers in a type are little-endian, as HDF5 counts them: texts of a fixed length have no order. */
function ordersOf({ type, vlen, littleEndian, ...of }: Metadata): boolean[] {
  if (type === COMPOUND) return (of.compound_type?.members ?? []).flatMap(ordersOf);
  const inner = of.array_type ?? of.vlen_type;
  if (inner) return ordersOf(inner);
  const hasNone = (type === STRING && !vlen) || type === OPAQUE || type === REFERENCE;
  return hasNone ? [] : [littleEndian];
}

function hasEnumeration({ type, compound_type, array_type }: Metadata): boolean {
  if (array_type) return hasEnumeration(array_type);
  return type === ENUM || (compound_type?.members ?? []).some(hasEnumeration);
}

function fieldOfLeaf({ metadata, name, at }: Leaf, isMixed: boolean): HdfField | undefined {
  const field = one(isMixed ? { ...metadata, littleEndian: true } : metadata, name, at);
  return field && isMixed && !metadata.littleEndian ? asBigEndian(field) : field;
}

function describeType({ type, size, array_type: element }: Metadata): string {
  switch (type) {
    case INTEGER:
      return `integers of ${size} bytes`;
    case FLOAT:
      return `floats of ${size} bytes`;
    case TIME:
      return 'times';
    case BITS:
      return 'bits';
    case OPAQUE:
      return 'opaque bytes';
    case REFERENCE:
      return 'references';
    case ENUM:
      return 'big-endian enumerations';
    case VARIABLE:
      return 'lists of variable length';
    case COMPOUND:
      return `records with more than ${MAX_COLUMNS.toLocaleString('en')} values`;
    case ARRAY:
      return element && countLeaves(element) * element.total_size <= MAX_COLUMNS
        ? `arrays of ${describeType(element)}`
        : `arrays of more than ${MAX_COLUMNS.toLocaleString('en')} values`;
    default:
      return `HDF5's class ${type}`;
  }
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
      return quoteCell(strpad === SPACE_PADDED ? text.replace(/(?<! ) +$/, '') : text, place);
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
