import type { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { assertUnchanged, type FileStat, holds } from './compare-file.ts';
import { giveName } from './give-name.ts';
import { find, findPlace, makeDirectories, pathIn, remove } from './sftp-paths.ts';
import { isRegularFile, type Sftp, STATUS, statusOf, withSftp } from './sftp-requests.ts';
import { meansFull, tryWrite } from './try-write.ts';
import { diskFull, isThere, noDirectory, noRegularFile, toWriteError } from './write-errors.ts';
import { writeTemporary } from './write-temporary.ts';

export interface WriteFileOptions {
  /** Absolute. A link is followed: the file that it names is replaced. */
  path: string;
  bytes: Readable;
  /** Bytes in all; fewer or more are an error, and the file is not replaced. */
  size: number;
  /** Permission bits; by default those of the replaced file, or 0666 under the account's umask. */
  mode?: number;
  /** Makes the directories that are missing. */
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

const CLEANUP_MS = 10_000;

/**
 * Writes a file beside its place on the session's host and renames it: it is there whole, or as before. Returns whether
 * it is new. Throws `not_found` (a directory), `forbidden`, `invalid_input` (no regular file), `precondition_failed`,
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
  const { present, path, directory } = await findPlace(channel, options.path);
  if (present && exclusive && !mayBeNamed) throw isThere(options.path);
  if (present && !isRegularFile(present)) throw noRegularFile(options.path, present);
  const inDirectory = (end: string) => pathIn(directory, temporaryName(end));
  const temporary = inDirectory(options.temporary);
  if (options.parents)
    await makeDirectories(channel, directory).catch(error => {
      throw isUnexplained(error) ? new FailedWrite(temporary, error) : error;
    });
  else if (!(await find(channel, directory))) throw noDirectory(directory);
  // All at once: each is asked for, though hardly one is there.
  await Promise.all(options.stale.map(stale => remove(channel, inDirectory(stale))));
  if (present && exclusive) {
    if (!(await holds(channel, path, options))) throw isThere(options.path);
    return { created: true };
  }
  try {
    await writeTemporary(channel, temporary, { ...options, present });
    await options.confirm();
    // As late as can be: a confirmation may take minutes.
    if (options.unchanged) await assertUnchanged(channel, options.path, options.unchanged);
    await giveName(channel, temporary, { path, exclusive });
  } catch (error) {
    // Whether the disk is full shows only while the file still takes its room.
    if (isUnexplained(error)) throw new FailedWrite(temporary, error);
    await remove(channel, temporary).catch(() => {});
    // What an earlier try sent may come late.
    const isTaken = error instanceof WindlassError && error.code === 'precondition_failed';
    if (isTaken && mayBeNamed && (await holds(channel, path, options)))
      return { created: exclusive };
    throw error;
  }
  return { created: present === undefined };
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

const temporaryName = (end: string) => `.windlass-${end}`;

/**
 * For a write whose channel was closed: its job was cancelled, which waits for no hanging disk, or the server was
 * silent.
 */
async function removeTemporary(session: RemoteSession, options: WriteFileOptions): Promise<void> {
  await limitTime(options.cleanupSignal, CLEANUP_MS, signal =>
    withSftp(session, signal, async channel => {
      const { directory } = await findPlace(channel, options.path);
      await remove(channel, pathIn(directory, temporaryName(options.temporary)));
    }),
  );
}
