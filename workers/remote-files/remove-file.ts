import type ssh2 from 'ssh2';
import { invalid, WindlassError } from '../../shared/errors/errors.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { changeUnchanged, type Expected } from './change-unchanged.ts';
import { orWords, refusalIn } from './host-refusal.ts';
import { realPath } from './sftp-paths.ts';
import {
  isDirectory,
  isUnexplained,
  type Sftp,
  STATUS,
  statusOf,
  withSftp,
} from './sftp-requests.ts';
import { mayNot, toRefusal } from './write-errors.ts';

interface RemoveFileOptions {
  path: string;
  /** Throws `precondition_failed` if the file is another one at the end. */
  expected?: Expected;
  /** Called before the file is removed. */
  confirm(): Promise<void>;
  signal: AbortSignal;
}

/**
 * Removes a file or link on the session's host. Throws `not_found`, `forbidden`, `invalid_input` (a directory),
 * `precondition_failed`, `conflict`, `remote_connection_failed`, or the signal's reason.
 */
export async function removeRemoteFile(
  session: RemoteSession,
  options: RemoveFileOptions,
): Promise<void> {
  const { path, expected, signal } = options;
  try {
    const real = await withSftp(session, signal, channel => begin(channel, options));
    if (!expected) return;
    const { state, alone } = expected;
    const command = 'rm -f "$f"';
    const words = await alone(real, () =>
      changeUnchanged(session, { path, state, command, signal }),
    );
    if (words !== undefined) throw toRefusal(words, path, 'removed');
  } catch (error) {
    if (isUnexplained(error)) await removeByShell(session, options);
    else throw toRemoveError(error, path);
  }
}

/** Removes the file unless that depends on its state. Returns realPath(). */
async function begin(
  channel: Sftp,
  { path, expected, confirm }: RemoveFileOptions,
): Promise<string> {
  const { sftp, request, act } = channel;
  const found = await request<ssh2.Stats>(done => sftp.lstat(path, done));
  if (isDirectory(found)) throw namesDirectory(path);
  await confirm();
  if (expected) return realPath(channel, path);
  await act(done => sftp.unlink(path, done));
  return path;
}

/** Says why, or removes the file after all. */
async function removeByShell(
  session: RemoteSession,
  { path, confirm, signal }: RemoveFileOptions,
): Promise<void> {
  await confirm();
  const program = `LC_ALL=C; export LC_ALL; ${orWords(`rm -f ${quoteWord(path)}`)}`;
  const words = refusalIn((await askHost(session, program, signal)).toString('latin1'));
  if (words !== undefined) throw toRefusal(words, path, 'removed');
}

/** What a status of the host means for a removal. */
function toRemoveError(error: unknown, path: string): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile)
    return new WindlassError('not_found', {
      detail: `there is no ${path} on the host.`,
      hint: 'Check the path; it is read as the account of the session sees it.',
    });
  if (status === STATUS.permissionDenied) return mayNot(path, 'removed');
  return toRefusal((error as Error).message, path, 'removed');
}

const namesDirectory = (path: string) =>
  invalid(
    `path: ${path} is a directory.`,
    'Give the path of a file; a command removes a directory.',
  );
