import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { isOther } from './require-state.ts';
import {
  isDirectory,
  isRegularFile,
  type Sftp,
  STATUS,
  statusOf,
  withSftp,
} from './sftp-requests.ts';
import { meansFull, tryWrite } from './try-write.ts';

export interface WriteFileOptions {
  /** Absolute. A link is followed: the file that it names is replaced. */
  path: string;
  bytes: Readable;
  /** Bytes in all; fewer or more are an error, and the file is not replaced. */
  size: number;
  /** Permission bits; by default those of the replaced file, or 0666 under the account's umask. */
  mode?: number;
  /** Makes the folders that are missing. */
  parents: boolean;
  /** In base64, the SHA-256 of all bytes. */
  digest: string;
  /** Throws `precondition_failed` where there is such a file. */
  exclusive: boolean;
  /** Whether an earlier try may have given the file its name. */
  mayBeNamed: boolean;
  /** From statFile(): throws `precondition_failed` if the file differs from it at the end. */
  unchanged?: FileStat;
  /** Ends the names of temporary files beside it; those of `stale` are removed. */
  temporary: string;
  stale: string[];
  /** Called before the file gets its name. */
  confirm(): Promise<void>;
  signal: AbortSignal;
  /** Aborted later than `signal`: until then what was begun is removed. */
  cleanupSignal: AbortSignal;
  /** How long the server may take for an answer. Default: see withSftp(). */
  answerMs?: number;
}

/** Bytes of one request: what every server takes. */
const CHUNK_BYTES = 32_768;
const CLEANUP_MS = 10_000;
/** Requests in flight: 2 MiB, for links with much delay. */
const PIPELINED = 64;

/**
 * Writes a file beside its place on the session's host and renames it: it is there whole, or as before. Returns whether
 * it is new. Throws `not_found` (a folder), `forbidden`, `invalid_input` (no regular file), `precondition_failed`,
 * `remote_disk_full`, `remote_connection_failed`, or the signal's reason.
 */
export async function writeRemoteFile(
  session: RemoteSession,
  options: WriteFileOptions,
): Promise<{ created: boolean }> {
  try {
    return await withSftp(session, options.signal, channel => write(channel, options), options);
  } catch (error) {
    if (options.signal.aborted || isSilence(error))
      await removeTemporary(session, options).catch(() => {});
    else if (error instanceof FailedWrite) throw await explain(session, error, options);
    throw toWriteError(error, options.path);
  } finally {
    options.bytes.destroy();
  }
}

/** The server may still answer others, over a channel of their own. */
const isSilence = (error: unknown) => error instanceof WindlassError && error.code === 'time_limit';

async function write(channel: Sftp, options: WriteFileOptions): Promise<{ created: boolean }> {
  const { exclusive, mayBeNamed } = options;
  const { present, path, folder } = await findPlace(channel, options.path);
  if (present && exclusive && !mayBeNamed) throw isThere(options.path);
  if (present && !isRegularFile(present)) throw noRegularFile(options.path, present);
  const inFolder = (end: string) => posix.join(folder, temporaryName(end));
  const temporary = inFolder(options.temporary);
  if (options.parents)
    await makeFolders(channel, folder).catch(error => {
      throw isUnexplained(error) ? new FailedWrite(temporary, error) : error;
    });
  else if (!(await find(channel, folder))) throw noFolder(folder);
  for (const stale of options.stale) await remove(channel, inFolder(stale));
  if (present && exclusive) {
    if (!(await holds(channel, path, options))) throw isThere(options.path);
    return { created: true };
  }
  try {
    await writeTemporary(channel, temporary, { ...options, mode: options.mode ?? present?.mode });
    if (options.unchanged) await assertUnchanged(channel, options.path, options.unchanged);
    await options.confirm();
    await giveName(channel, temporary, { path, exclusive });
  } catch (error) {
    // Whether the disk is full shows only while the file still takes its room.
    if (isUnexplained(error)) throw new FailedWrite(temporary, error);
    await remove(channel, temporary).catch(() => {});
    throw error;
  }
  return { created: present === undefined };
}

/** By what SFTP tells: times in seconds. */
async function assertUnchanged(channel: Sftp, path: string, before: FileStat) {
  const now = await find(channel, path);
  if (now?.size !== before.size || now?.mtime !== before.mtime) throw isOther(path);
}

/** Nothing of a file that is not there. */
type FileStat = Partial<Pick<ssh2.Stats, 'size' | 'mtime'>>;

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
  { path, signal, ...bytes }: Pick<WriteFileOptions, 'path' | 'size' | 'digest' | 'signal'>,
): Promise<boolean> {
  return withSftp(session, signal, async channel => {
    const found = await find(channel, path);
    return found !== undefined && isRegularFile(found) && (await holds(channel, path, bytes));
  });
}

/** A write that the host refused without saying why. */
class FailedWrite extends Error {
  readonly temporary: string;

  constructor(temporary: string, cause: unknown) {
    super('the host refused a write', { cause });
    this.temporary = temporary;
  }
}

const isUnexplained = (error: unknown) => statusOf(error) === STATUS.failure;

/** Asks the host for the cause, over a new channel, and removes what is left. */
async function explain(
  session: RemoteSession,
  { temporary, cause }: FailedWrite,
  options: WriteFileOptions,
): Promise<unknown> {
  const words = await tryWrite(session, temporary, options.cleanupSignal);
  await removeTemporary(session, options).catch((error: unknown) => {
    // Where nothing can be written there is nothing to remove; a lost connection is tried again.
    if (statusOf(error) === undefined) throw error;
  });
  return meansFull(words) ? diskFull(options.path) : toWriteError(cause, options.path, words);
}

/** The folder of a link is not that of its file, which may be missing. */
async function findPlace(channel: Sftp, given: string) {
  const { sftp, request } = channel;
  const present = await find(channel, given);
  const path = present
    ? await request<string>(done => sftp.realpath(given, done))
    : await followLinks(channel, given);
  return { present, path, folder: posix.dirname(path) };
}

const temporaryName = (end: string) => `.windlass-${end}`;

/**
 * For a write whose channel was closed: its job was cancelled, which waits for no hanging disk, or the server was
 * silent.
 */
async function removeTemporary(session: RemoteSession, options: WriteFileOptions): Promise<void> {
  await limitTime(options.cleanupSignal, CLEANUP_MS, signal =>
    withSftp(session, signal, async channel => {
      const { folder } = await findPlace(channel, options.path);
      await remove(channel, posix.join(folder, temporaryName(options.temporary)));
    }),
  );
}

/** Whether the file has the bytes that are to be written. */
async function holds(
  { sftp, request }: Sftp,
  path: string,
  { size, digest }: Pick<WriteFileOptions, 'size' | 'digest'>,
): Promise<boolean> {
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

async function find({ sftp, request }: Sftp, path: string): Promise<ssh2.Stats | undefined> {
  return request<ssh2.Stats>(done => sftp.stat(path, done)).catch((error: unknown) => {
    if (statusOf(error) === STATUS.noSuchFile) return undefined;
    throw error;
  });
}

/** More than a kernel follows. */
const MAX_LINKS = 40;

/** The target of a link to a missing file; without a link the path itself. */
async function followLinks({ sftp, request }: Sftp, given: string): Promise<string> {
  let path = given;
  for (let count = 0; count < MAX_LINKS; count++) {
    const link = path;
    const target = await request<string>(done => sftp.readlink(link, done)).catch(
      (error: unknown) => {
        if (statusOf(error) !== undefined) return undefined;
        throw error;
      },
    );
    if (target === undefined) return path;
    // A folder on the way may be a link, too: then `..` leads elsewhere.
    const folder = await request<string>(done => sftp.realpath(posix.dirname(link), done));
    path = target.startsWith('/') ? target : `${folder}/${target}`;
  }
  throw new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${given} is a link that leads to itself.`,
    hint: 'Give the path of a file.',
  });
}

async function remove({ sftp, act }: Sftp, path: string): Promise<void> {
  await act(done => sftp.unlink(path, done)).catch((error: unknown) => {
    if (statusOf(error) !== STATUS.noSuchFile) throw error;
  });
}

async function makeFolders(channel: Sftp, folder: string): Promise<void> {
  const { sftp, act } = channel;
  const present = await find(channel, folder);
  if (present && !isDirectory(present)) throw isNoFolder(folder);
  if (present) return;
  await makeFolders(channel, posix.dirname(folder));
  await act(done => sftp.mkdir(folder, done)).catch(async (error: unknown) => {
    // Another one made it meanwhile.
    if (!(await find(channel, folder))) throw error;
  });
}

async function writeTemporary(
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

async function giveName(
  channel: Sftp,
  temporary: string,
  { path, exclusive }: { path: string; exclusive: boolean },
): Promise<void> {
  const { sftp, act } = channel;
  if (!exclusive) {
    // The rename of the draft does not replace a file.
    await act(done => sftp.ext_openssh_rename(temporary, path, done)).catch(
      explainUnsupported('posix-rename@openssh.com'),
    );
    return;
  }
  // A link is made only where there is no such name.
  try {
    await act(done => sftp.ext_openssh_hardlink(temporary, path, done));
  } catch (error) {
    if (await find(channel, path)) throw isThere(path);
    return explainUnsupported('hardlink@openssh.com')(error);
  }
  await remove(channel, temporary).catch((error: unknown) => {
    // The file is there, whole; what is written to the other name goes to it too.
    if (statusOf(error) === undefined) throw error;
  });
}

/** A server without this extension; ssh2 throws an error of its own. */
const isUnsupported = (error: unknown) =>
  statusOf(error) === STATUS.unsupported ||
  (error as Error).message === 'Server does not support this extended request';

function ignoreUnsupported(error: unknown): void {
  if (!isUnsupported(error)) throw error;
}

const explainUnsupported = (extension: string) => (error: unknown) => {
  if (!isUnsupported(error)) throw error;
  throw new WindlassError('sftp_unavailable', {
    detail: `SFTP unavailable: the host's SFTP server lacks ${extension}, by which a file gets its name at once.`,
    hint: `Have ${extension} allowed there: OpenSSH's sftp-server has it, unless -P or -p leaves it out.`,
  });
};

/** What a status of the host means for a write. */
export function toWriteError(
  error: unknown,
  path: string,
  words = (error as Error).message,
): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile) return noFolder(posix.dirname(path));
  if (status === STATUS.permissionDenied)
    return new WindlassError('forbidden', {
      detail: `Forbidden: the account on the host may not write ${path}.`,
      hint: 'Choose another folder, or open a session as another account.',
    });
  return new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${path} cannot be written: ${words}.`,
    hint: 'Check the name of the file, and what the host allows.',
  });
}

const diskFull = (path: string) =>
  new WindlassError('remote_disk_full', {
    detail: `Remote disk full: there is no space on the host, or in the account's quota, to write ${path}; nothing of it stayed.`,
    hint: 'Free some space there, or choose another folder.',
  });

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

const isNoFolder = (path: string) =>
  new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${path} is no folder.`,
    hint: 'Choose another path.',
  });

const noRegularFile = (path: string, found: ssh2.Stats) =>
  new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${path} is ${isDirectory(found) ? 'a directory' : 'no regular file'}.`,
    hint: 'Give the path of a file.',
  });
