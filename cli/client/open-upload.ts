import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { WindlassError } from '../../clients/typescript/src/error.ts';
import { type OpenedFile, openFile } from '../../clients/typescript/src/node.ts';
import { isOutOfSpace } from '../../shared/process/disk-errors.ts';
import { CommandError, reasonOf } from '../command-error.ts';

export interface OpenedUpload extends OpenedFile {
  /** Whether another process cannot read the same bytes again. */
  isPiped: boolean;
}

/** A file to be sent; what comes through a pipe is kept in a temporary file, since parts may be sent twice. */
export async function openUpload(path: string): Promise<OpenedUpload> {
  try {
    const found = await stat(path);
    if (found.isFIFO() || (isStandardInput(path) && found.isSocket())) return await spool(path);
    return { ...(await openFile(path)), isPiped: false };
  } catch (cause) {
    // The temporary file has failed, not the given one.
    if (cause instanceof WindlassError || isOutOfSpace(cause)) throw cause;
    throw new CommandError(`${path} cannot be read: ${reasonOf(cause)}.`, { cause });
  }
}

async function spool(path: string): Promise<OpenedUpload> {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-'));
  const file = join(folder, basename(path));
  try {
    const from: Readable = isStandardInput(path) ? process.stdin : createReadStream(path);
    const to = await open(file, 'wx', 0o600);
    await pipeline(from, to.createWriteStream());
    return { ...(await openFile(file)), isPiped: true };
  } finally {
    // It is read through its handle, and is gone however this process ends.
    await rm(folder, { recursive: true, force: true });
  }
}

const isStandardInput = (path: string) => ['/dev/stdin', '/dev/fd/0'].includes(path);
