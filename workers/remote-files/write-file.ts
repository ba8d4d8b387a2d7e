import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import type ssh2 from 'ssh2';
import { abortableOpen } from '../../shared/abort.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import {
  isDirectory,
  isRegularFile,
  makeRequester,
  type Request,
  STATUS,
  statusOf,
} from './sftp-requests.ts';

export interface WriteFileOptions {
  /** Absolute. A link is followed: the file that it names is replaced. */
  path: string;
  bytes: Readable;
  /** Of all bytes; fewer or more are an error, and the file is not replaced. */
  size: number;
  /** Permission bits; else those of the file that is replaced, or what the account's umask makes of 0666. */
  mode?: number;
  /** Makes the folders that are missing. */
  parents: boolean;
  /** Throws `precondition_failed` where there is such a file. */
  exclusive: boolean;
  /** Ends the names of temporary files beside it; those of `stale` are removed. */
  temporary: string;
  stale: string[];
  /** Called before the file gets its name. */
  confirm(): Promise<void>;
  signal: AbortSignal;
}

/** Bytes of one request: what every server takes. */
const CHUNK_BYTES = 32_768;
/** Requests in flight: 2 MiB, for links with much delay. */
const PIPELINED = 64;

interface Target {
  request: Request;
  sftp: ssh2.SFTPWrapper;
  path: string;
}

/**
 * Writes a file beside its place on the session's host and renames it, so that it is there whole or as before. Whether it
 * is new. Throws `not_found` (a folder), `forbidden`, `invalid_input` (no regular file), `precondition_failed`,
 * `remote_connection_failed`, or the signal's reason.
 */
export async function writeRemoteFile(
  session: RemoteSession,
  options: WriteFileOptions,
): Promise<{ created: boolean }> {
  const { signal } = options;
  const sftp = await abortableOpen(session.sftp(signal), signal, late => late.end());
  const close = () => sftp.end();
  signal.addEventListener('abort', close, { once: true });
  const target: Target = { sftp, request: makeRequester(sftp, signal), path: options.path };
  try {
    return await write(target, options);
  } catch (error) {
    throw toError(error, options.path);
  } finally {
    signal.removeEventListener('abort', close);
    sftp.end();
    options.bytes.destroy();
  }
}

async function write(target: Target, options: WriteFileOptions): Promise<{ created: boolean }> {
  const { sftp, request } = target;
  const present = await find(target, options.path);
  if (present && options.exclusive) throw isThere(options.path);
  if (present && !isRegularFile(present)) throw noRegularFile(options.path, present);
  // The folder of a link is not that of its file.
  const path = present
    ? await request<string>(done => sftp.realpath(options.path, done))
    : options.path;
  const folder = posix.dirname(path);
  if (options.parents) await makeFolders(target, folder);
  else if (!(await find(target, folder))) throw noFolder(folder);
  const inFolder = (end: string) => posix.join(folder, `.windlass-${end}`);
  for (const end of options.stale) await remove(target, inFolder(end));
  const temporary = inFolder(options.temporary);
  try {
    await writeTemporary(target, temporary, { ...options, mode: options.mode ?? present?.mode });
    await options.confirm();
    await giveName(target, temporary, { path, exclusive: options.exclusive });
  } catch (error) {
    await remove(target, temporary).catch(() => {});
    throw error;
  }
  return { created: present === undefined };
}

async function find({ sftp, request }: Target, path: string): Promise<ssh2.Stats | undefined> {
  return request<ssh2.Stats>(done => sftp.stat(path, done)).catch((error: unknown) => {
    if (statusOf(error) === STATUS.noSuchFile) return undefined;
    throw error;
  });
}

async function remove({ sftp, request }: Target, path: string): Promise<void> {
  await request<void>(done => sftp.unlink(path, error => done(error ?? undefined))).catch(
    (error: unknown) => {
      if (statusOf(error) !== STATUS.noSuchFile) throw error;
    },
  );
}

async function makeFolders(target: Target, folder: string): Promise<void> {
  const { sftp, request } = target;
  const present = await find(target, folder);
  if (present && !isDirectory(present)) throw noFolder(folder);
  if (present) return;
  await makeFolders(target, posix.dirname(folder));
  await request<void>(done => sftp.mkdir(folder, error => done(error ?? undefined))).catch(
    async (error: unknown) => {
      // Another one made it meanwhile.
      if (!(await find(target, folder))) throw error;
    },
  );
}

async function writeTemporary(
  { sftp, request }: Target,
  path: string,
  { bytes, size, mode }: { bytes: Readable; size: number; mode?: number },
): Promise<void> {
  const handle = await request<Buffer>(done => sftp.open(path, 'w', done));
  const under = new Set<Promise<void>>();
  let failed: unknown;
  let written = 0;
  const send = (chunk: Buffer, at: number) => {
    const one = request<void>(done =>
      sftp.write(handle, chunk, 0, chunk.length, at, error => done(error ?? undefined)),
    )
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
  if (mode !== undefined)
    await request<void>(done =>
      sftp.fchmod(handle, mode & 0o7777, error => done(error ?? undefined)),
    );
  await request<void>(done =>
    sftp.ext_openssh_fsync(handle, error => done(error ?? undefined)),
  ).catch(ignoreUnsupported);
  await request<void>(done => sftp.close(handle, error => done(error ?? undefined)));
  // A full disk may show only now, where the file is on a network.
  const { size: stored } = await request<ssh2.Stats>(done => sftp.stat(path, done));
  if (stored !== size) throw new Error(`of ${size} bytes ${stored} are on the host`);
}

async function giveName(
  target: Target,
  temporary: string,
  { path, exclusive }: { path: string; exclusive: boolean },
): Promise<void> {
  const { sftp, request } = target;
  if (!exclusive) {
    // The rename of the draft does not replace a file.
    await request<void>(done =>
      sftp.ext_openssh_rename(temporary, path, error => done(error ?? undefined)),
    );
    return;
  }
  // A link is made only where there is no such name.
  try {
    await request<void>(done =>
      sftp.ext_openssh_hardlink(temporary, path, error => done(error ?? undefined)),
    );
  } catch (error) {
    if (await find(target, path)) throw isThere(path);
    throw error;
  }
  await remove(target, temporary);
}

/** ssh2 throws an error without a status where the server has no such extension. */
function ignoreUnsupported(error: unknown): void {
  if (error instanceof WindlassError || statusOf(error) !== undefined) throw error;
}

function toError(error: unknown, path: string): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile) return noFolder(posix.dirname(path));
  if (status === STATUS.permissionDenied)
    return new WindlassError('forbidden', {
      detail: `Forbidden: the account on the host may not write ${path}.`,
      hint: 'Choose another folder, or open a session as another account.',
    });
  return new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${path} cannot be written: ${(error as Error).message}.`,
    hint: "Check the room on the host's disk and the name of the file.",
  });
}

const isThere = (path: string) =>
  new WindlassError('precondition_failed', {
    detail: `Precondition failed: ${path} is there already.`,
    hint: 'Leave out If-None-Match to replace it.',
  });

const noFolder = (folder: string) =>
  new WindlassError('not_found', {
    detail: `Not found: there is no folder ${folder} on the host.`,
    hint: 'Check the path, or give ?parents=true to make it.',
  });

const noRegularFile = (path: string, found: ssh2.Stats) =>
  new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${path} is ${isDirectory(found) ? 'a directory' : 'no regular file'}.`,
    hint: 'Give the path of a file.',
  });
