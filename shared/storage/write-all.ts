import type { FileHandle } from 'node:fs/promises';
import { type Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { assertBuffersSize, enforceSize } from './declared-size.ts';
import { translateFileError } from './file-errors.ts';

/** checkSpace() is called after so many bytes. */
const CHECK_EVERY_BYTES = 16 << 20;

interface WriteOptions {
  size?: number;
  signal?: AbortSignal;
  /** Rejects where there is no space for more. */
  checkSpace(): Promise<void>;
}

/** Writes the whole source and returns its number of bytes. Errors of the source are thrown on as they are. */
export async function writeAll(
  file: FileHandle,
  source: Readable | Buffer[],
  { size, signal, checkSpace }: WriteOptions,
): Promise<number> {
  if (Array.isArray(source)) {
    assertBuffersSize(source, size);
    signal?.throwIfAborted();
    return writeBuffers(file, source);
  }
  let written = 0;
  let checkedAt = 0;
  const write = async (pieces: Buffer[]) => {
    written += await writeBuffers(file, pieces);
    if (written - checkedAt < CHECK_EVERY_BYTES) return;
    checkedAt = written;
    await checkSpace();
  };
  const sink = new Writable({
    highWaterMark: 1 << 20,
    write: (piece: Buffer, _encoding, done) => write([piece]).then(() => done(), done),
    writev: (pieces, done) => write(pieces.map(({ chunk }) => chunk)).then(() => done(), done),
  });
  if (size === undefined) await pipeline(source, sink, { signal });
  else await pipeline(source, given => enforceSize(size, given), sink, { signal });
  return written;
}

/** Writes all buffers. One writev() may write a part of them, on a full disk for example. */
async function writeBuffers(file: FileHandle, buffers: Buffer[]): Promise<number> {
  let written = 0;
  for (let left = buffers.filter(buffer => buffer.length > 0); left.length > 0; ) {
    const { bytesWritten } = await file.writev(left).catch((error: unknown) => {
      throw translateFileError(error);
    });
    written += bytesWritten;
    left = dropBytes(left, bytesWritten);
  }
  return written;
}

function dropBytes(buffers: Buffer[], count: number): Buffer[] {
  let drop = count;
  const from = buffers.findIndex(buffer => {
    if (buffer.length > drop) return true;
    drop -= buffer.length;
    return false;
  });
  const [first, ...rest] = from === -1 ? [] : buffers.slice(from);
  return first ? [first.subarray(drop), ...rest] : [];
}
