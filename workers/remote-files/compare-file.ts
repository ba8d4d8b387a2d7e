import { createHash } from 'node:crypto';
import type ssh2 from 'ssh2';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { isOther } from './require-state.ts';
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

/** Nothing of a file that is not there. */
export type FileStat = Partial<Pick<ssh2.Stats, 'size' | 'mtime'>>;

export function statFile(
  session: RemoteSession,
  path: string,
  signal: AbortSignal,
): Promise<FileStat> {
  return withSftp(session, signal, async channel => (await find(channel, path)) ?? {});
}

/** Whether the file has the bytes that an earlier try has written. */
export function isWritten(
  session: RemoteSession,
  { path, signal, ...bytes }: Content & { path: string; signal: AbortSignal },
): Promise<boolean> {
  return withSftp(session, signal, channel => holds(channel, path, bytes));
}

/** By what SFTP tells: times in seconds. */
export async function assertUnchanged(channel: Sftp, path: string, before: FileStat) {
  const now = await find(channel, path);
  if (now?.size !== before.size || now?.mtime !== before.mtime) throw isOther(path);
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
  const handle = await request<Buffer>(done => sftp.open(path, 'r', done));
  const hash = createHash('sha256');
  let seen = 0;
  for (let count = 1; count > 0 && seen <= size; seen += count) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const position = seen;
    count = await request<number>(done =>
      sftp.read(handle, chunk, 0, chunk.length, position, done),
    ).catch((error: unknown) => {
      if (statusOf(error) === STATUS.endOfFile) return 0;
      throw error;
    });
    hash.update(chunk.subarray(0, count));
  }
  return seen === size && hash.digest('base64') === digest;
}
