import type ssh2 from 'ssh2';
import { forbidden, invalid, WindlassError } from '../../shared/errors/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { assertUnchanged, type FileStat } from './compare-file.ts';
import { isDirectory, STATUS, statusOf, withSftp } from './sftp-requests.ts';

interface RemoveFileOptions {
  path: string;
  /** From statFile(): throws `precondition_failed` if the file differs from it at the end. */
  unchanged?: FileStat;
  /** Called before the file is removed. */
  confirm(): Promise<void>;
  signal: AbortSignal;
}

/**
 * Removes a file or link on the session's host. Throws `not_found`, `forbidden`, `invalid_input` (a directory),
 * `precondition_failed`, `remote_connection_failed`, or the signal's reason.
 */
export async function removeRemoteFile(
  session: RemoteSession,
  { path, unchanged, confirm, signal }: RemoveFileOptions,
): Promise<void> {
  try {
    await withSftp(session, signal, async channel => {
      const { sftp, request, act } = channel;
      const found = await request<ssh2.Stats>(done => sftp.lstat(path, done));
      if (isDirectory(found)) throw namesDirectory(path);
      await confirm();
      if (unchanged) await assertUnchanged(channel, path, unchanged);
      await act(done => sftp.unlink(path, done));
    });
  } catch (error) {
    throw toRemoveError(error, path);
  }
}

/** What a status of the host means for a removal. */
export function toRemoveError(error: unknown, path: string): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile)
    return new WindlassError('not_found', {
      detail: `there is no ${path} on the host.`,
      hint: 'Check the path; it is read as the account of the session sees it.',
    });
  return forbidden(
    `the account on the host may not remove ${path}: ${(error as Error).message}.`,
    "Change the directory's permissions, or open a session as another account.",
  );
}

const namesDirectory = (path: string) =>
  invalid(
    `path: ${path} is a directory.`,
    'Give the path of a file; a command removes a directory.',
  );
