import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { changeUnchanged, type Expected } from './change-unchanged.ts';
import { holds, isWritten } from './compare-file.ts';
import { giveName } from './give-name.ts';
import { openTemporary, prepareDirectory } from './open-temporary.ts';
import { beside } from './remove-temporaries.ts';
import { meansOther } from './require-state.ts';
import { findTarget, realPath, remove, removeDirectories } from './sftp-paths.ts';
import { isRegularFile, isUnexplained, type Sftp, statusOf, withSftp } from './sftp-requests.ts';
import { tryWrite } from './try-write.ts';
import { isThere, noRegularFile, toRefusal, toWriteError } from './write-errors.ts';
import { writeTemporary } from './write-temporary.ts';

export interface WriteFileOptions {
  /** Absolute. A link is followed, unless the write is exclusive: the file that it names is replaced. */
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
  /** Throws `precondition_failed` if the file is another one at the end. */
  expected?: Expected;
  /** What the names of its temporary files end with; those of `stale` are removed. */
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

export const CLEANUP_MS = 10_000;

/** What a write leaves where it fails. */
interface Remains {
  temporary: string;
  /** Directories that it made, from the highest to the lowest. */
  made: string[];
}

/**
 * Writes a file beside its place on the session's host and renames it: it is there whole, or as before. Returns whether
 * it is new. Throws `not_found` (a directory), `forbidden`, `invalid_input` (no regular file), `precondition_failed`,
 * `conflict`, `remote_disk_full`, `remote_connection_failed`, or the signal's reason.
 */
export async function writeRemoteFile(
  session: RemoteSession,
  options: WriteFileOptions,
): Promise<{ created: boolean }> {
  const { path, signal } = options;
  const remains = { temporary: beside(posix.dirname(path), options.temporary), made: [] };
  try {
    const written = await withSftp(
      session,
      signal,
      channel => write(channel, options, remains),
      options,
    );
    const { created, expected } = written;
    if (expected) await replaceExpected(session, options, { expected, ...written, remains });
    return { created };
  } catch (error) {
    if (signal.aborted || isSilence(error)) await undo(session, remains, options).catch(() => {});
    else if (isUnexplained(error)) throw await explain(session, error, { options, remains });
    throw toWriteError(error, path);
  } finally {
    options.bytes.destroy();
  }
}

/** Whether the server was silent: it may still answer over another channel. */
const isSilence = (error: unknown) => error instanceof WindlassError && error.code === 'time_limit';

interface Written {
  created: boolean;
  /** What the file replaces, while it is still to get its name. */
  expected?: Expected;
  path: string;
  /** The path that realPath() returned. */
  real: string;
}

async function write(channel: Sftp, options: WriteFileOptions, remains: Remains): Promise<Written> {
  const { exclusive, mayBeNamed, expected } = options;
  const { present, path, directory } = await findTarget(channel, options.path, options);
  if (present && exclusive && !mayBeNamed) throw isThere(options.path);
  if (present && !isRegularFile(present)) throw noRegularFile(options.path, present);
  const temporary = beside(directory, options.temporary);
  remains.temporary = temporary;
  const stale = options.stale.map(end => beside(directory, end));
  const file = { ...options, directory, temporary, stale, present, made: remains.made };
  const written = { created: present === undefined, path, real: path };
  try {
    if (present && exclusive) {
      await prepareDirectory(channel, file);
      if (!(await holds(channel, path, options))) throw isThere(options.path);
      return { ...written, created: true };
    }
    const handle = await openTemporary(channel, file);
    await writeTemporary(channel, temporary, { ...options, handle, present });
    await options.confirm();
    if (expected) return { created: false, expected, path, real: await realPath(channel, path) };
    await giveName(channel, temporary, { path, exclusive });
  } catch (error) {
    // Whether the disk is full shows only while the file still takes its room.
    if (isUnexplained(error)) throw error;
    await clear(channel, remains).catch(() => {});
    // What an earlier try sent may come late.
    if (meansOther(error) && mayBeNamed && (await holds(channel, path, options)))
      return { ...written, created: exclusive };
    throw error;
  }
  return written;
}

/** Gives the temporary file its name while the file that it replaces is as expected: as late as can be. */
async function replaceExpected(
  session: RemoteSession,
  options: WriteFileOptions,
  { expected, path, real, remains }: Required<Written> & { remains: Remains },
): Promise<void> {
  const { signal, mayBeNamed } = options;
  const { state, alone } = expected;
  const command = `mv -f ${quoteWord(remains.temporary)} "$f"`;
  try {
    const words = await alone(real, () =>
      changeUnchanged(session, { path, given: options.path, state, command, signal }),
    );
    if (words !== undefined) throw toRefusal(words, path, 'written');
  } catch (error) {
    if (signal.aborted) throw error;
    await undo(session, remains, options).catch(() => {});
    if (meansOther(error) && mayBeNamed && (await isWritten(session, { ...options, path }))) return;
    throw error;
  }
}

/** Asks the host for the cause, over a new channel, and removes what is left. */
async function explain(
  session: RemoteSession,
  cause: unknown,
  { options, remains }: { options: WriteFileOptions; remains: Remains },
): Promise<unknown> {
  const { path, cleanupSignal } = options;
  const words = await tryWrite(session, { path, temporary: remains.temporary }, cleanupSignal);
  await undo(session, remains, options).catch((error: unknown) => {
    // Where nothing can be written there is nothing to remove; a lost connection is tried again.
    if (statusOf(error) === undefined) throw error;
  });
  return words === undefined ? toWriteError(cause, path) : toRefusal(words, path, 'written');
}

/**
 * Removes what a write left, over another channel: its own was closed because its job was cancelled, which waits for no hanging
 * disk, or because the server was silent.
 */
async function undo(
  session: RemoteSession,
  remains: Remains,
  { cleanupSignal }: WriteFileOptions,
): Promise<void> {
  await limitTime(cleanupSignal, CLEANUP_MS, signal =>
    withSftp(session, signal, channel => clear(channel, remains)),
  );
}

async function clear(channel: Sftp, { temporary, made }: Remains): Promise<void> {
  await remove(channel, temporary);
  await removeDirectories(channel, made);
}
