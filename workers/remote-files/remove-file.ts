import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { isDirectory, STATUS, statusOf, withSftp } from './sftp-requests.ts';

/**
 * Removes a file or link on the session's host, after `confirm`. Throws `not_found`, `forbidden`, `invalid_input` (a
 * directory), `remote_connection_failed`, or the signal's reason.
 */
export async function removeRemoteFile(
  session: RemoteSession,
  { path, confirm, signal }: { path: string; confirm(): Promise<void>; signal: AbortSignal },
): Promise<void> {
  try {
    await withSftp(session, signal, async ({ sftp, request, act }) => {
      const found = await request<ssh2.Stats>(done => sftp.lstat(path, done));
      if (isDirectory(found)) throw namesDirectory(path);
      await confirm();
      await act(done => sftp.unlink(path, done));
    });
  } catch (error) {
    throw toError(error, path);
  }
}

function toError(error: unknown, path: string): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile)
    return new WindlassError('not_found', {
      detail: `Not found: there is no ${path} on the host.`,
      hint: 'Check the path; it is read as the account of the session sees it.',
    });
  return new WindlassError('forbidden', {
    detail: `Forbidden: the account on the host may not remove ${path}: ${(error as Error).message}.`,
    hint: "Change the directory's permissions, or open a session as another account.",
  });
}

const namesDirectory = (path: string) =>
  new WindlassError('invalid_input', {
    detail: `Invalid parameters: path: ${path} is a directory.`,
    hint: 'Give the path of a file; a command removes a directory.',
  });
