import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { TableError } from '../table/protocol.ts';

const [READ_BYTES, CHUNK_BYTES] = [1 << 16, 1 << 18];
const ZERO = Buffer.alloc(READ_BYTES);

/**
 * Expands gzip (RFC 1952), member by member. Zeros may follow the last one, as padding of tapes and some programs:
 * there Node reports the end and accepts no more input.
 */
export async function* gzipMembers(path: string): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // A failure to read is thrown by the iterator.
  pipeline(createReadStream(path, { highWaterMark: READ_BYTES }), gunzip, () => {});
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code?.startsWith('Z_') ? damaged(message) : error;
  }
  const rest = createReadStream(path, { start: gunzip.bytesWritten, highWaterMark: READ_BYTES });
  for await (const piece of rest as AsyncIterable<Buffer>)
    if (!piece.equals(ZERO.subarray(0, piece.length)))
      throw damaged('there is something else after its end');
}

const damaged = (why: string) =>
  new TableError({
    reason: `the gzip file is damaged: ${why}`,
    hint: 'Compress the file again, and send it again.',
  });
