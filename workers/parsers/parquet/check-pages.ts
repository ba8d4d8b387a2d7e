import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { TableError } from '../table/protocol.ts';
import { damaged } from './refuse-damaged.ts';
import { ThriftReader } from './thrift.ts';

/** The pages of a column in a row group. */
interface Chunk {
  column: string;
  /** The offsets between which they lie. */
  from: number;
  to: number;
}

interface PageHeader {
  /** Bytes of the header. */
  length: number;
  /** Bytes of the page after it. */
  size: number;
  /** The checksum of these bytes, if the file has one. */
  checksum: number | undefined;
}

const HEADER_BYTES = 4 << 10;
/** A header has the least and the greatest value of its page. */
const MAX_HEADER_BYTES = 16 << 20;
const PIECE_BYTES = 1 << 20;
/** An honest footer has some 100 bytes for each column of a row group. */
const MAX_FOOTER_BYTES = 64 << 20;
/** Bytes after the footer: its length and PAR1. */
const TAIL_BYTES = 8;

/**
 * Throws TableError for an encrypted file, and for a page that fails its checksum, which DuckDB ignores. A program
 * writes checksums for all pages or none: without one on the first page, no other is read.
 */
export async function checkPages(input: string): Promise<void> {
  const file = await open(input);
  try {
    const chunks = await listChunks(file);
    const [first] = chunks;
    if (!first || (await readHeader(file, first, first.from)).checksum === undefined) return;
    const piece = Buffer.alloc(PIECE_BYTES);
    let left = (await file.stat()).size;
    for (const chunk of chunks)
      for (let at = chunk.from; at < chunk.to; ) {
        const { length, size, checksum } = await readHeader(file, chunk, at);
        const page = at + length;
        at = page + size;
        left -= length + size;
        // Else a small file may name its largest page a million times.
        if (left < 0) throw damaged('its pages are larger than the file');
        if (checksum !== undefined && checksum !== (await checksumOf(file, piece, [page, at])))
          throw damaged(`a page of the column ${nameOf(chunk)} has another checksum`);
      }
  } finally {
    await file.close();
  }
}

/** FileMetaData of the Parquet format. */
async function listChunks(file: FileHandle): Promise<Chunk[]> {
  const { size } = await file.stat();
  const tail = await readAt(file, size - TAIL_BYTES, TAIL_BYTES);
  if (tail.length < TAIL_BYTES) throw damaged('it ends too early');
  const length = tail.readUInt32LE();
  if (length > size - TAIL_BYTES) throw damaged('its footer says that it is longer than the file');
  if (length > MAX_FOOTER_BYTES)
    throw new TableError({
      reason: `its footer has more than ${MAX_FOOTER_BYTES.toLocaleString('en')} bytes`,
      hint: 'Write the file with fewer row groups.',
    });
  const footer = new ThriftReader(await readAt(file, size - TAIL_BYTES - length, length));
  const chunks: Chunk[] = [];
  let isEncrypted = false;
  const readChunk = () => {
    const path: string[] = [];
    let [values, bytes, pages, dictionary] = [0, 0, 0, 0];
    footer.struct({
      3: () =>
        footer.struct({
          3: () => footer.list(() => path.push(footer.text())),
          5: () => (values = footer.integer()),
          7: () => (bytes = footer.integer()),
          9: () => (pages = footer.integer()),
          11: () => (dictionary = footer.integer()),
        }),
    });
    // Some programs write a 0 where there is no dictionary.
    const from = dictionary > 0 && dictionary < pages ? dictionary : pages;
    if (values > 0) chunks.push({ column: path.join('.'), from, to: from + bytes });
  };
  try {
    footer.struct({
      4: () => footer.list(() => footer.struct({ 1: () => footer.list(readChunk) })),
      8: type => {
        isEncrypted = true;
        footer.skip(type);
      },
    });
  } catch {
    throw damaged('its footer cannot be read');
  }
  if (isEncrypted)
    throw new TableError({
      reason: 'the Parquet file is encrypted',
      hint: 'Write it without encryption.',
    });
  return chunks;
}

async function readHeader(file: FileHandle, chunk: Chunk, at: number): Promise<PageHeader> {
  for (let length = HEADER_BYTES; ; length *= 16) {
    const bytes = await readAt(file, at, length);
    const reader = new ThriftReader(bytes);
    let size = -1;
    let checksum: number | undefined;
    try {
      reader.struct({
        3: () => (size = reader.integer()),
        4: () => (checksum = reader.integer() >>> 0),
      });
      if (size >= 0) return { length: reader.at, size, checksum };
    } catch (error) {
      const goesOn = error instanceof RangeError && bytes.length === length;
      if (goesOn && length < MAX_HEADER_BYTES) continue;
    }
    throw damaged(`a page of the column ${nameOf(chunk)} has no valid header`);
  }
}

async function checksumOf(
  file: FileHandle,
  piece: Buffer,
  [from, to]: [from: number, to: number],
): Promise<number> {
  let sum = 0;
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(piece, 0, Math.min(piece.length, to - at), at);
    if (bytesRead === 0) throw damaged('it ends too early');
    sum = crc32(piece.subarray(0, bytesRead), sum);
    at += bytesRead;
  }
  return sum;
}

/** Fewer bytes at the end of the file. */
async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  if (!Number.isSafeInteger(at) || at < 0)
    throw damaged('it says that there is something before it');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}

const nameOf = ({ column }: Chunk) => JSON.stringify(column.slice(0, 200));
