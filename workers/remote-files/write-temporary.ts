import type { Readable } from 'node:stream';
import type ssh2 from 'ssh2';
import { CHUNK_BYTES, isUnsupported, type Sftp, statusOf } from './sftp-requests.ts';
import { isShorter } from './write-errors.ts';

/** Requests in flight: 2 MiB, for links with much delay. */
const PIPELINED = 64;

interface TemporaryFile {
  /** From openTemporary() for the same path. It is closed in the end. */
  handle: Buffer;
  bytes: Readable;
  size: number;
  /** The path of the file that it becomes. */
  path: string;
  /** Default: the mode of the file that is replaced, or the account's. */
  mode?: number;
  /** The file that is replaced. */
  present?: ssh2.Stats;
}

export async function writeTemporary(
  channel: Sftp,
  temporary: string,
  { handle, bytes, size, path, mode, present }: TemporaryFile,
): Promise<void> {
  const { sftp, request, act } = channel;
  const under = new Set<Promise<void>>();
  let failed: unknown;
  let written = 0;
  const send = (chunk: Buffer, at: number) => {
    // ssh2 passes a count besides the status.
    const one = act(done => sftp.write(handle, chunk, 0, chunk.length, at, error => done(error)))
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
  const kept = present && (await keepGroup(channel, { handle, present }));
  const permissions = mode ?? kept;
  if (permissions !== undefined) await act(done => sftp.fchmod(handle, permissions & 0o7777, done));
  await act(done => sftp.ext_openssh_fsync(handle, done)).catch(ignoreUnsupported);
  await act(done => sftp.close(handle, done));
  // A full disk may show only now, where the file is on a network.
  const { size: stored } = await request('attributes', done => sftp.stat(temporary, done));
  if (stored !== size) throw isShorter(path, { size, stored });
}

const RIGHTS_OF_OWNER = 0o4000;
const RIGHTS_OF_GROUP = 0o2070;

/**
 * Gives the temporary file the group of the file that it replaces. Returns that file's mode, without rights that would go to
 * another owner or group.
 */
async function keepGroup(
  { sftp, request, act }: Sftp,
  { handle, present }: { handle: Buffer; present: ssh2.Stats },
): Promise<number> {
  const { uid, gid } = await request('attributes', done => sftp.fstat(handle, done));
  const mode = uid === present.uid ? present.mode : present.mode & ~RIGHTS_OF_OWNER;
  if (gid === present.gid) return mode;
  return act(done => sftp.fchown(handle, uid, present.gid, done)).then(
    () => mode,
    (error: unknown) => {
      if (statusOf(error) === undefined) throw error;
      return mode & ~RIGHTS_OF_GROUP;
    },
  );
}

function ignoreUnsupported(error: unknown): void {
  if (!isUnsupported(error)) throw error;
}
