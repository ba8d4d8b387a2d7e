import type { Readable } from 'node:stream';
import type ssh2 from 'ssh2';
import { CHUNK_BYTES, isUnsupported, type Sftp } from './sftp-requests.ts';

/** Requests in flight: 2 MiB, for links with much delay. */
const PIPELINED = 64;

export async function writeTemporary(
  { sftp, request, act }: Sftp,
  path: string,
  { bytes, size, mode }: { bytes: Readable; size: number; mode?: number },
): Promise<void> {
  // Private until it has the requested mode; without one it gets the account's at once.
  const attributes = mode === undefined ? {} : { mode: 0o600 };
  const handle = await request<Buffer>(done => sftp.open(path, 'w', attributes, done));
  const under = new Set<Promise<void>>();
  let failed: unknown;
  let written = 0;
  const send = (chunk: Buffer, at: number) => {
    const one = act(done => sftp.write(handle, chunk, 0, chunk.length, at, done))
      .catch((error: unknown) => {
        failed ??= error;
      })
      .finally(() => under.delete(one));
    under.add(one);
  };
  for await (const piece of bytes as AsyncIterable<Buffer>) {
    for (let start = 0; start < piece.length; start += CHUNK_BYTES) {
      const chunk = piece.subarray(start, start + CHUNK_BYTES);
      send(chunk, written);
      written += chunk.length;
      while (under.size >= PIPELINED) await Promise.race(under);
      if (failed) throw failed;
    }
  }
  await Promise.all(under);
  if (failed) throw failed;
  if (written !== size) throw new Error(`of ${size} bytes ${written} came`);
  if (mode !== undefined) await act(done => sftp.fchmod(handle, mode & 0o7777, done));
  await act(done => sftp.ext_openssh_fsync(handle, done)).catch(ignoreUnsupported);
  await act(done => sftp.close(handle, done));
  // A full disk may show only now, where the file is on a network.
  const { size: stored } = await request<ssh2.Stats>(done => sftp.stat(path, done));
  if (stored !== size) throw new Error(`of ${size} bytes ${stored} are on the host`);
}

function ignoreUnsupported(error: unknown): void {
  if (!isUnsupported(error)) throw error;
}
