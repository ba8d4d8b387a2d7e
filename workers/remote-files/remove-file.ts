import { conflict, invalid, WindlassError } from '../../shared/errors/errors.ts';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { changeUnchanged, type Expected } from './change-unchanged.ts';
import { OWN_IDENTITY, OWN_STATE } from './file-script.ts';
import { causeIn } from './host-refusal.ts';
import { meansOther } from './require-state.ts';
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

/** So often a file may be another one at the moment of its removal, and so often it may have been written to. */
const MAX_TRIES = 10;
const MAX_CHANGES = 3;
const REMOVE = 'rm -f "$f"';

/**
 * Removes a file or link on the session's host. Throws `not_found`, `forbidden`, `invalid_input` (a directory),
 * `precondition_failed`, `conflict`, `remote_connection_failed`, or the signal's reason.
 */
export async function removeRemoteFile(
  session: RemoteSession,
  options: RemoveFileOptions,
): Promise<void> {
  const { path, expected, confirm, signal } = options;
  try {
    if (!expected) return await removeSeen(session, options);
    await withSftp(session, signal, channel => requireFile(channel, path));
    await confirm();
    const real = await withSftp(session, signal, channel => realPath(channel, path));
    const { state, alone } = expected;
    const remove = () => changeUnchanged(session, { path, state, command: REMOVE, signal });
    throwRefusal(path, await alone(real, remove));
  } catch (error) {
    throw isUnexplained(error)
      ? await explain(session, error, options)
      : toRemoveError(error, path);
  }
}

/**
 * Removes what each try sees there, and nothing else: what is sent may come late over a lost connection, after another
 * try has removed the file and somebody has written it anew. One that is written to all the time is known by its inode.
 */
async function removeSeen(
  session: RemoteSession,
  { path, confirm, signal }: RemoveFileOptions,
): Promise<void> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const reader = tries > MAX_CHANGES ? OWN_IDENTITY : OWN_STATE;
    await withSftp(session, signal, channel => requireFile(channel, path));
    const state = await readState(session, { path, reader, signal });
    // It is gone since.
    if (state === '') continue;
    await confirm();
    const seen = { path, state, reader, command: REMOVE, signal };
    try {
      return throwRefusal(path, await changeUnchanged(session, seen));
    } catch (error) {
      if (!meansOther(error)) throw error;
    }
  }
  throw conflict(`other changes of ${path} go on all the time.`, 'Try again when they have ended.');
}

async function requireFile({ sftp, request }: Sftp, path: string): Promise<void> {
  const found = await request('attributes', done => sftp.lstat(path, done));
  if (isDirectory(found)) throw namesDirectory(path);
}

async function readState(
  host: RemoteExec,
  { path, reader, signal }: { path: string; reader: string; signal: AbortSignal },
): Promise<string> {
  const program = `LC_ALL=C; export LC_ALL
set -f
f=${quoteWord(path)}
${reader}
set -- $(state)
printf '%s' "$*"`;
  return (await askHost(host, program, signal)).toString('latin1');
}

function throwRefusal(path: string, words: string | undefined): void {
  if (words !== undefined) throw toRefusal(words, path, 'removed');
}

/** Asks the host for the cause. */
async function explain(
  session: RemoteSession,
  cause: unknown,
  { path, signal }: RemoveFileOptions,
): Promise<unknown> {
  const program = `LC_ALL=C; export LC_ALL; ls -d ${quoteWord(path)} 2>&1 >/dev/null`;
  const words = causeIn((await askHost(session, program, signal)).toString('latin1'));
  return words === undefined ? toRemoveError(cause, path) : toRefusal(words, path, 'removed');
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
