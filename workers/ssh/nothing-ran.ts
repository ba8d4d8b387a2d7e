import { setTimeout as delay } from 'node:timers/promises';
import type { WindlassError } from '../../shared/errors/errors.ts';
import type { ExecChannel, RemoteExec } from '../host-agent/exec-channel.ts';
import { toUnusableError } from '../host-agent/protocol/hello.ts';

/** A channel closes soon after its output, unless a process holds it. */
const CLOSE_MS = 1_000;
const MAX_CHARACTERS = 4_096;
/** The status with which OpenSSH's server itself ends, as where the account has too many logins for now. */
const SSHD_FAILED = 254;

/** Reads a channel's standard error; what its beginning says so far. */
export function readWords({ stderr }: ExecChannel): () => string {
  let words = '';
  stderr.on('error', () => {});
  stderr.on('data', (bytes: Buffer) => {
    if (words.length < MAX_CHARACTERS) words += bytes.toString();
  });
  return () => words;
}

/**
 * For output that ended before the first word of the program that the shell was to start: `shell_unusable` where the
 * shell itself has ended, as one that is restricted; undefined where the connection was lost.
 */
export async function whyNothingRan(
  remote: RemoteExec,
  { closed }: ExecChannel,
  words: () => string,
): Promise<WindlassError | undefined> {
  const end = await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })]);
  if (remote.isClosed || !end || end.code === null || end.code === SSHD_FAILED) return undefined;
  return toUnusableError(`ran no command, and ended with status ${end.code}`, words());
}
