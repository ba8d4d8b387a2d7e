import { createReadStream, createWriteStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { boundExpansion, largestExpansion, SMALL_BYTES } from './bound-expansion.ts';
import { gzipMembers } from './gzip.ts';
import { isZstd, zstdFrames } from './zstd.ts';

interface Files {
  input: string;
  scratch: string;
  /** The most bytes that it may expand to. */
  expanded: number;
}

/**
 * The file, or the expansion of a gzip or zstd file (one level), and its limit in bytes. Throws TableError if it is
 * damaged or too large.
 */
export async function expandFile({
  input,
  scratch,
  expanded,
}: Files): Promise<{ path: string; expanded: number }> {
  const compression = await compressionOf(input);
  if (!compression) return { path: input, expanded };
  const path = join(scratch, 'expanded');
  const { size } = await stat(input);
  const bytes =
    compression === 'gzip'
      ? gzipMembers(input)
      : zstdFrames(createReadStream(input, { highWaterMark: 1 << 16 }));
  await pipeline(
    bytes,
    boundExpansion({ compressed: size, limit: expanded }),
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
  );
  const largest = largestExpansion({ compressed: size, limit: expanded });
  return { path, expanded: Math.max(largest, Math.min(expanded, SMALL_BYTES)) };
}

async function compressionOf(path: string): Promise<'gzip' | 'zstd' | undefined> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer.readUInt16BE(0) === 0x1f8b) return 'gzip';
    return isZstd(buffer.readUInt32LE(0)) ? 'zstd' : undefined;
  } finally {
    await file.close();
  }
}
