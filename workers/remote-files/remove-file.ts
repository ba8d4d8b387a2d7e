import type ssh2 from 'ssh2';
import { forbidden, invalid, WindlassError } from '../../shared/errors/errors.ts';
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
