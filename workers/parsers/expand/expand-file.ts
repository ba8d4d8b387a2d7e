import { createReadStream, createWriteStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { TableError } from '../table/protocol.ts';
import { boundExpansion } from './bound-expansion.ts';
import { zstdFrames } from './zstd.ts';

interface Files {
  input: string;
  scratch: string;
  /** The most bytes that it may expand to. */
  expanded: number;
}

/** The file, or what a gzip or zstd file expands to, once. Throws TableError if that is damaged or too much. */
export async function expandFile({ input, scratch, expanded }: Files): Promise<{ path: string }> {
  const compression = await compressionOf(input);
  if (!compression) return { path: input };
  const path = join(scratch, 'expanded');
  const { size } = await stat(input);
  await pipeline(
    createReadStream(input, { highWaterMark: 1 << 16 }),
    compression === 'gzip' ? createGunzip({ chunkSize: 1 << 18 }) : zstdFrames,
    boundExpansion({ compressed: size, limit: expanded }),
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
  ).catch((error: NodeJS.ErrnoException) => {
    if (!error.code?.startsWith('Z_')) throw error;
    throw new TableError({
      reason: `the gzip file is damaged: ${error.message}`,
      hint: 'Compress the file again, and send it again.',
    });
  });
  return { path };
}

async function compressionOf(path: string): Promise<'gzip' | 'zstd' | undefined> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer.readUInt16BE(0) === 0x1f8b) return 'gzip';
    return buffer.readUInt32LE(0) === 0xfd2fb528 ? 'zstd' : undefined;
  } finally {
    await file.close();
  }
}
