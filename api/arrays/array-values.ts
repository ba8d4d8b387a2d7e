import { ARRAY_TYPES, type ArrayType } from '../../shared/arrays/npy-header.ts';
import { encodeExact, encodeValue } from '../tables/encode-value.ts';
import type { Run } from './parse-slice.ts';

type Read = (bytes: Buffer, at: number) => boolean | number | bigint;

const READ: Record<ArrayType, Read> = {
  '|b1': (bytes, at) => bytes[at] !== 0,
  '|i1': (bytes, at) => bytes.readInt8(at),
  '|u1': (bytes, at) => bytes.readUInt8(at),
  '<i2': (bytes, at) => bytes.readInt16LE(at),
  '<u2': (bytes, at) => bytes.readUInt16LE(at),
  '<i4': (bytes, at) => bytes.readInt32LE(at),
  '<u4': (bytes, at) => bytes.readUInt32LE(at),
  '<i8': (bytes, at) => bytes.readBigInt64LE(at),
  '<u8': (bytes, at) => bytes.readBigUInt64LE(at),
  '<f4': (bytes, at) => bytes.readFloatLE(at),
  '<f8': (bytes, at) => bytes.readDoubleLE(at),
};

interface Wanted {
  descr: ArrayType;
  /** Integers as texts. */
  exact: boolean;
  /** In their order; from the first of them on. */
  runs: Iterable<Run>;
}

/** The JSON texts of the values of runs, in pieces, from the bytes of the array that begin with the first run. */
export async function* writeValues(
  source: AsyncIterable<Buffer>,
  { descr, exact, runs }: Wanted,
): AsyncGenerator<string> {
  const { size } = ARRAY_TYPES[descr];
  const read = READ[descr];
  const encode = exact ? encodeExact : encodeValue;
  let first: number | undefined;
  /** The rest of the bytes at hand, which begin there. */
  let rest: Buffer = Buffer.alloc(0);
  let begin = 0;
  const pieces = source[Symbol.asyncIterator]();
  let isFirst = true;
  for (const { start, length } of runs) {
    first ??= start;
    const from = (start - first) * size;
    const to = from + length * size;
    for (let at = from; at < to; ) {
      while (begin + rest.length < at + size) {
        const { value, done } = await pieces.next();
        if (done) throw new Error('the array ends too early');
        // What lies before the run is not wanted.
        const kept = rest.subarray(Math.min(rest.length, at - begin));
        begin += rest.length - kept.length;
        rest = kept.length > 0 ? Buffer.concat([kept, value]) : value;
      }
      const values: string[] = [];
      for (const end = Math.min(to, begin + rest.length - size + 1); at < end; at += size)
        values.push(encode(read(rest, at - begin)));
      yield `${isFirst ? '' : ','}${values.join(',')}`;
      isFirst = false;
    }
  }
}
