import { readFile } from 'node:fs/promises';
import { ARRAY_TYPES, type ArrayType } from '../../../shared/arrays/npy-header.ts';
import { TableError } from '../table/protocol.ts';
import { floatReader } from './fields.ts';
import { readRecords } from './read-records.ts';

interface RawArray {
  path: string;
  offset: number;
  /** NumPy's type, of either byte order. */
  code: string;
  shape: number[];
  isFortran: boolean;
}

/** A Fortran-order array is transposed in memory, in a share of the child's. */
const MAX_TURNED_BYTES = 64 << 20;
const PIECE_VALUES = 1 << 15;

/** The type that the array is stored with; undefined for types that arrays do not have. */
export function storedType(code: string): ArrayType | undefined {
  const plain = code.replace(/^[>=]/, '<').replace(/^<([biu]1)$/, '|$1');
  if (plain === '<f2') return '<f4';
  return plain in ARRAY_TYPES ? (plain as ArrayType) : undefined;
}

/** The values in C order and little-endian. */
export async function* inCOrder(array: RawArray): AsyncGenerator<Buffer> {
  const size = Number(array.code.slice(2));
  for await (const piece of array.isFortran
    ? turned(array, size)
    : readRecords(array.path, { offset: array.offset, size }))
    yield inOurBytes(piece, { code: array.code, size });
}

function inOurBytes(piece: Buffer, { code, size }: { code: string; size: number }): Buffer {
  const isBig = code.startsWith('>');
  if (code.endsWith('f2')) {
    const read = floatReader(2, isBig);
    const wide = Buffer.alloc(piece.length * 2);
    for (let at = 0; at < piece.length; at += 2) wide.writeFloatLE(read(piece, at), at * 2);
    return wide;
  }
  if (!isBig || size === 1) return piece;
  const copy = Buffer.from(piece);
  if (size === 2) return copy.swap16();
  return size === 4 ? copy.swap32() : copy.swap64();
}

async function* turned({ path, offset, shape }: RawArray, size: number): AsyncGenerator<Buffer> {
  const count = shape.reduce((product, length) => product * length, 1);
  if (count * size > MAX_TURNED_BYTES)
    throw new TableError({
      reason: `the array is in Fortran order and larger than ${MAX_TURNED_BYTES.toLocaleString('en')} bytes`,
      hint: 'Save numpy.ascontiguousarray(array).',
    });
  const bytes = (await readFile(path)).subarray(offset);
  // In Fortran order the first index changes fastest.
  const strides: number[] = [];
  shape.reduce((stride, length) => {
    strides.push(stride);
    return stride * length;
  }, 1);
  const index = shape.map(() => 0);
  let from = 0;
  let out = Buffer.alloc(Math.min(count, PIECE_VALUES) * size);
  let length = 0;
  for (let n = 0; n < count; n++) {
    bytes.copy(out, length, from * size, (from + 1) * size);
    length += size;
    for (let d = shape.length - 1; d >= 0; d--) {
      from += strides[d] as number;
      if (++(index[d] as number) < (shape[d] as number)) break;
      from -= (strides[d] as number) * (shape[d] as number);
      index[d] = 0;
    }
    if (length === out.length || n === count - 1) {
      yield out.subarray(0, length);
      out = Buffer.alloc(out.length);
      length = 0;
    }
  }
}
