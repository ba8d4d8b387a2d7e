import { readSync } from 'node:fs';

/** The parts of an object header that are needed here, as the HDF5 File Format Specification 3.0, section IV names them. */
const DATATYPE = 3;
const EXTERNAL_FILES = 7;
const CONTINUATION = 16;
const SHARED = 2;
const COMMITTED = 2;
/** Classes of datatypes there. */
const [INTEGER, FLOAT, TIME, STRING, BITS, OPAQUE] = [0, 1, 2, 3, 4, 5];
const [COMPOUND, REFERENCE, ENUM, VARIABLE, ARRAY] = [6, 7, 8, 9, 10];
/** More than any header has: bounds how far a damaged file is followed. */
const MAX_BLOCKS = 1_000;
const MAX_BLOCK_BYTES = 1 << 20;
const MAX_DEPTH = 32;
const SIGNATURE = Buffer.from('\x89HDF\r\n\x1a\n', 'latin1');

/**
 * Reads dataset headers from the file itself: h5wasm does not tell which bits of a number are used, nor whether its
 * values are in this file.
 */
export class Datatypes {
  readonly #fd: number;
  /** The place of the superblock, from which addresses count. */
  readonly #base: number;
  readonly #offsetSize: number;
  readonly #lengthSize: number;

  constructor(fd: number) {
    this.#fd = fd;
    let base = 0;
    // HDF5 has opened it, so there is one.
    while (!this.#at(base, 8).equals(SIGNATURE)) base = base === 0 ? 512 : base * 2;
    const head = this.#at(base, 16);
    this.#base = base;
    const sizes = head.readUInt8(8) < 2 ? 13 : 9;
    this.#offsetSize = head.readUInt8(sizes);
    this.#lengthSize = head.readUInt8(sizes + 1);
  }

  /**
   * Whether all numbers in each member of a record, or in a type that is no record, are integers that use all their bits, or
   * IEEE 754 floats; other types do not matter. Shorter where the type is unknown from some member on.
   */
  plainMembers(reference: Buffer): boolean[] {
    try {
      const message = this.#find(DATATYPE, numberAt(reference, 0, this.#offsetSize));
      return message ? measure(message, 0).plain : [];
    } catch (error) {
      // The header claims more than it holds.
      if (error instanceof RangeError) return [];
      throw error;
    }
  }

  /** Whether the values of a dataset lie in files beside this one. */
  hasOtherFiles(reference: Buffer): boolean {
    try {
      const address = numberAt(reference, 0, this.#offsetSize);
      return this.#find(EXTERNAL_FILES, address) !== undefined;
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
  }

  #at(position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(this.#fd, bytes, 0, length, position));
  }

  #find(wanted: number, address: number, depth = 0): Buffer | undefined {
    if (depth > MAX_DEPTH) return undefined;
    const start = this.#base + address;
    const head = this.#at(start, 64);
    const isNew = head.toString('latin1', 0, 4) === 'OHDR';
    const flags = isNew ? head.readUInt8(5) : 0;
    const sizeAt = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    const sizeLength = 1 << (flags & 3);
    const blocks = isNew
      ? [{ at: start + sizeAt + sizeLength, length: numberAt(head, sizeAt, sizeLength) }]
      : [{ at: start + 16, length: head.readUInt32LE(8) }];
    for (let i = 0; i < blocks.length && i < MAX_BLOCKS; i++) {
      const { at, length } = blocks[i] as { at: number; length: number };
      const block = this.#at(at, Math.min(length, MAX_BLOCK_BYTES));
      for (const { type, isShared, data } of messagesOf(block, isNew, (flags & 4) !== 0)) {
        if (type === wanted) return isShared ? this.#findShared(data, depth) : data;
        if (type !== CONTINUATION) continue;
        const next = this.#base + numberAt(data, 0, this.#offsetSize);
        const size = numberAt(data, this.#offsetSize, this.#lengthSize);
        // A block of the new form has a signature and a checksum.
        blocks.push(isNew ? { at: next + 4, length: size - 8 } : { at: next, length: size });
      }
    }
    return undefined;
  }

  /** The datatype of a committed type; one in a heap of shared messages is not looked for. */
  #findShared(data: Buffer, depth: number): Buffer | undefined {
    const version = data.readUInt8(0);
    if (version === 3 && data.readUInt8(1) !== COMMITTED) return undefined;
    const address = numberAt(data, version === 1 ? 8 : 2, this.#offsetSize);
    return this.#find(DATATYPE, address, depth + 1);
  }
}

function* messagesOf(block: Buffer, isNew: boolean, hasOrder: boolean) {
  const head = isNew ? (hasOrder ? 6 : 4) : 8;
  for (let at = 0; at + head <= block.length; ) {
    const type = isNew ? block.readUInt8(at) : block.readUInt16LE(at);
    const length = block.readUInt16LE(at + (isNew ? 1 : 2));
    const flags = block.readUInt8(at + (isNew ? 3 : 4));
    const data = block.subarray(at + head, at + head + length);
    yield { type, isShared: (flags & SHARED) !== 0, data };
    at += head + length;
  }
}

const numberAt = (bytes: Buffer, at: number, length: number): number =>
  length === 8 ? Number(bytes.readBigUInt64LE(at)) : bytes.readUIntLE(at, length);

/** What is known of a datatype message. */
interface Measured {
  length: number;
  /** For each member of a record, or else for the type itself: see plainMembers(). */
  plain: boolean[];
}

function measure(message: Buffer, depth: number): Measured {
  const version = message.readUInt8(0) >> 4;
  const type = message.readUInt8(0) & 0xf;
  const size = message.readUInt32LE(4);
  const rest = message.subarray(8);
  const inner = (from: number): Measured => {
    const { length, plain } = measure(message.subarray(from), depth + 1);
    return { length: from + length, plain: [plain.every(Boolean)] };
  };
  if (depth > MAX_DEPTH) return unknown(message);
  switch (type) {
    case INTEGER:
      return {
        length: 12,
        plain: [rest.readUInt16LE(0) === 0 && rest.readUInt16LE(2) === 8 * size],
      };
    case FLOAT:
      return { length: 20, plain: [isIeee(message)] };
    case TIME:
      return { length: 10, plain: [true] };
    case BITS:
      return { length: 12, plain: [true] };
    case OPAQUE:
      // A description of its bytes.
      return { length: 8 + message.readUInt8(1), plain: [true] };
    case STRING:
    case REFERENCE:
      return { length: 8, plain: [true] };
    case VARIABLE:
      return inner(8);
    case ARRAY:
      // The oldest form has permutations beside the lengths.
      return inner(8 + (version < 3 ? 4 + 8 * rest.readUInt8(0) : 1 + 4 * rest.readUInt8(0)));
    case COMPOUND:
      return measureRecord(message, depth);
    case ENUM:
      return measureEnumeration(message, depth);
    default:
      return unknown(message);
  }
}

/** Where it ends is unknown, and so is what follows it. */
const unknown = (message: Buffer): Measured => ({ length: message.length, plain: [false] });

/** An enumeration consists of the type of its numbers, the names, and the numbers. */
function measureEnumeration(message: Buffer, depth: number): Measured {
  const { length, plain } = measure(message.subarray(8), depth + 1);
  const count = message.readUInt16LE(1);
  let at = 8 + length;
  for (let i = 0; i < count; i++) {
    const name = lengthOfName(message, at);
    if (name === undefined) return unknown(message);
    at += name;
  }
  return { length: at + count * message.readUInt32LE(4), plain };
}

/** Bytes of a name; older forms pad it to a multiple of eight. */
function lengthOfName(message: Buffer, at: number): number | undefined {
  const length = message.indexOf(0, at) + 1 - at;
  if (length <= 0) return undefined;
  return message.readUInt8(0) >> 4 < 3 ? Math.ceil(length / 8) * 8 : length;
}

/** Sign, exponent and mantissa are where IEEE 754 has them, and no bit is left over. */
function isIeee(message: Buffer): boolean {
  const size = message.readUInt32LE(4);
  const [, layout] =
    [
      [4, '0 32 23 8 0 23 127 31'],
      [8, '0 64 52 11 0 52 1023 63'],
    ].find(([of]) => of === size) ?? [];
  const bits = message.readUIntLE(1, 3);
  // Not VAX, and the first bit of the mantissa is implied.
  const isCommon = (bits & 0x40) === 0 && ((bits >> 4) & 3) === 2;
  const found = [
    ...[message.readUInt16LE(8), message.readUInt16LE(10)],
    ...message.subarray(12, 16),
    ...[message.readUInt32LE(16), (bits >> 8) & 0xff],
  ];
  return isCommon && found.join(' ') === layout;
}

function measureRecord(message: Buffer, depth: number): Measured {
  const version = message.readUInt8(0) >> 4;
  const count = message.readUInt16LE(1);
  const size = message.readUInt32LE(4);
  let offsetLength = 1;
  while (offsetLength < 4 && size >= 256 ** offsetLength) offsetLength++;
  const plain: boolean[] = [];
  let at = 8;
  for (let i = 0; i < count; i++) {
    const name = lengthOfName(message, at);
    if (name === undefined) return { length: message.length, plain: [...plain, false] };
    // The oldest form has dimensions beside the offset.
    at += name + (version === 1 ? 32 : version === 2 ? 4 : offsetLength);
    const member = measure(message.subarray(at), depth + 1);
    plain.push(member.plain.every(Boolean));
    at += member.length;
  }
  return { length: at, plain };
}
