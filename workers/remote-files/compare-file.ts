import { createHash } from 'node:crypto';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { find } from './sftp-paths.ts';
import {
  CHUNK_BYTES,
  isRegularFile,
  type Sftp,
  STATUS,
  statusOf,
  withSftp,
} from './sftp-requests.ts';

interface Content {
  size: number;
  /** In base64, the SHA-256 of all bytes. */
  digest: string;
}

/** Whether the file has the bytes that an earlier try has written. */
export function isWritten(
  session: RemoteSession,
  { path, signal, ...bytes }: Content & { path: string; signal: AbortSignal },
): Promise<boolean> {
  return withSftp(session, signal, channel => holds(channel, path, bytes));
}

/** Whether there is a file with the bytes that are to be written. */
export async function holds(
  channel: Sftp,
  path: string,
  { size, digest }: Content,
): Promise<boolean> {
  const found = await find(channel, path);
  if (!found || !isRegularFile(found)) return false;
  const { sftp, request } = channel;
  const handle = await request('handle', done => sftp.open(path, 'r', done));
  const hash = createHash('sha256');
  let seen = 0;
  for (let count = 1; count > 0 && seen <= size; seen += count) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const position = seen;
    count = await request('count', done =>
      sftp.read(handle, chunk, 0, chunk.length, position, done),
    ).catch((error: unknown) => {
      if (statusOf(error) === STATUS.endOfFile) return 0;
      throw error;
    });
    hash.update(chunk.subarray(0, count));
  }
  return seen === size && hash.digest('base64') === digest;
}
