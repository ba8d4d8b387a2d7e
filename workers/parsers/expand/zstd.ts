import { Decompress } from 'fzstd';
import xxhash from 'xxhash-wasm';
import { TableError } from '../table/protocol.ts';
import { ByteReader } from './byte-reader.ts';

const MAGIC = 0xfd2fb528;
/** The first of 16 numbers of frames that are no data. */
const SKIPPABLE = 0x184d2a50;
const isSkippable = (magic: number) => magic >>> 4 === SKIPPABLE >>> 4;
/** Whether a file that begins with this number is zstd; files of pzstd begin with a skippable frame. */
export const isZstd = (magic: number) => magic === MAGIC || isSkippable(magic);
const MAX_BLOCK = 128 << 10;
/** The most memory for which zstd itself expands by default. */
const MAX_WINDOW = 128 << 20;
const RESERVED_BLOCK = 3;
const RLE_BLOCK = 1;

interface FrameHeader {
  bytes: Buffer;
  hasChecksum: boolean;
  /** The expanded size, if stated. */
  size: number | undefined;
}

/**
 * Expands zstd (RFC 8878), frame by frame. Walks the frames itself, because fzstd checks neither checksums nor a
 * frame's memory. Replace by zlib's when the oldest supported Node has it (22.15).
 */
export async function* zstdFrames(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const reader = new ByteReader(source);
  const { create64 } = await xxhash();
  for (;;) {
    const magic = await reader.take(4);
    if (magic.length === 0) return;
    const number = magic.length === 4 ? magic.readUInt32LE() : 0;
    if (isSkippable(number)) await skipFrame(reader);
    else if (number === MAGIC) yield* expandFrame(reader, magic, create64());
    else throw damaged('there is something else after its end');
  }
}

async function skipFrame(reader: ByteReader): Promise<void> {
  let left = (await takeAll(reader, 4)).readUInt32LE();
  while (left > 0) left -= (await takeAll(reader, Math.min(left, MAX_BLOCK))).length;
}

type Hash = ReturnType<Awaited<ReturnType<typeof xxhash>>['create64']>;

async function* expandFrame(reader: ByteReader, magic: Buffer, hash: Hash): AsyncGenerator<Buffer> {
  const expanded: Buffer[] = [];
  const decompress = new Decompress(data => expanded.push(Buffer.from(data)));
  let size = 0;
  // fzstd holds the first 18 bytes back until it has them or is told that no more come.
  const push = (bytes: Buffer, isEnd = false) => {
    try {
      decompress.push(bytes, isEnd);
    } catch (error) {
      throw damaged(error instanceof Error ? error.message : String(error));
    }
    const pieces = expanded.splice(0);
    for (const piece of pieces) {
      hash.update(piece);
      size += piece.length;
    }
    return pieces;
  };
  const header = await readHeader(reader);
  yield* push(Buffer.concat([magic, header.bytes]));
  for (let isLast = false; !isLast; ) {
    const head = await takeAll(reader, 3);
    const word = head.readUIntLE(0, 3);
    const type = (word >> 1) & 3;
    const size = word >> 3;
    if (size > MAX_BLOCK || type === RESERVED_BLOCK) throw damaged('a block is invalid');
    isLast = (word & 1) === 1;
    const content = await takeAll(reader, type === RLE_BLOCK ? 1 : size);
    yield* push(Buffer.concat([head, content]), isLast && !header.hasChecksum);
  }
  const checksum = header.hasChecksum ? await takeAll(reader, 4) : undefined;
  if (checksum) yield* push(checksum, true);
  if (header.size !== undefined && size !== header.size)
    throw damaged(`a frame says that it has ${header.size} bytes, and it has ${size}`);
  if (checksum && Number(hash.digest() & 0xffffffffn) !== checksum.readUInt32LE())
    throw damaged('its checksum is another');
}

async function readHeader(reader: ByteReader): Promise<FrameHeader> {
  const descriptor = await takeAll(reader, 1);
  const flags = descriptor[0] as number;
  const isSingleSegment = (flags & 0x20) !== 0;
  const dictionary = [0, 1, 2, 4][flags & 3] as number;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][flags >> 6] as number;
  const rest = await takeAll(reader, (isSingleSegment ? 0 : 1) + dictionary + sizeBytes);
  if (dictionary > 0) throw damaged('it wants a dictionary');
  const size = sizeBytes > 0 ? contentSize(rest.subarray(rest.length - sizeBytes)) : undefined;
  const window = isSingleSegment ? (size ?? 0) : windowSize(rest[0] as number);
  if (window > MAX_WINDOW)
    throw new TableError({
      reason: `the zstd file wants ${window} bytes of memory, and at most ${MAX_WINDOW} are given`,
      hint: 'Compress it with zstd --long=27, or less.',
    });
  return { bytes: Buffer.concat([descriptor, rest]), hasChecksum: (flags & 4) !== 0, size };
}

function contentSize(field: Buffer): number {
  if (field.length === 8) return Number(field.readBigUInt64LE());
  // Two bytes count from 256 on.
  return field.readUIntLE(0, field.length) + (field.length === 2 ? 256 : 0);
}

function windowSize(byte: number): number {
  const base = 2 ** (10 + (byte >> 3));
  return base + (base / 8) * (byte & 7);
}

async function takeAll(reader: ByteReader, count: number): Promise<Buffer> {
  const bytes = await reader.take(count);
  if (bytes.length < count) throw damaged('it ends too early');
  return bytes;
}

const damaged = (why: string) =>
  new TableError({
    reason: `the zstd file is damaged: ${why}`,
    hint: 'Compress the file again, and send it again.',
  });
