import { randomBytes } from 'node:crypto';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { KEEP_FUNCTIONS, NO_FUNCTIONS } from '../host-agent/no-functions.ts';
import { toPrintError } from '../host-agent/protocol/hello.ts';
import { NoAnswer } from '../host-agent/protocol/no-answer.ts';
import { readWords, whyNothingRan } from './nothing-ran.ts';
import { readAll } from './read-all.ts';

/** A command of a batch system may wait a minute for its controller, and then tries again. */
export const ANSWER_SECONDS = 180;
/** Limit on an answer's bytes, more than any takes: a hostile host must not fill this worker's memory. */
const MAX_BYTES = 32 << 20;
/** What a piece takes beside its bytes, of which a host may send one at a time. */
const PIECE_BYTES = 256;
/** The last line of an answer: a connection that is lost may cut it anywhere. */
const WHOLE = Buffer.from('\nwhole\n');

/** A cause where the host began with the program, which may hang while the host does not. */
export class UnfinishedProgram extends NoAnswer {}

/**
 * Runs a program for sh on the host over its own channel and returns its output. The program comes by standard input,
 * so that any login shell starts it and any length fits; it is one function, so that a truncated one does nothing. Throws
 * `remote_connection_failed`, `startup_files_print`, `shell_unusable`, or the signal's reason.
 */
export async function askHost(
  remote: RemoteExec,
  program: string,
  signal: AbortSignal,
): Promise<Buffer> {
  // Start-up files may print before it, even a part of a line.
  const first = Buffer.from(`\nwindlass-${randomBytes(8).toString('hex')}\n`);
  const timeout = AbortSignal.timeout(ANSWER_SECONDS * 1_000);
  const either = AbortSignal.any([signal, timeout]);
  const channel = await remote.exec('exec /bin/sh', signal);
  try {
    channel.stdin.on('error', () => {});
    channel.stdin.end(
      `windlass_ask() {\n${KEEP_FUNCTIONS}\n${NO_FUNCTIONS}\nprintf '${printable(first)}'\n(\n${program}\n)\nprintf '${printable(WHOLE)}'\n}\nwindlass_ask\n`,
    );
    const words = readWords(channel);
    const pieces: Buffer[] = [];
    let bytes = 0;
    const take = async (piece: Buffer) => {
      bytes += piece.length + PIECE_BYTES;
      if (bytes > MAX_BYTES)
        throw new Error(`the answer of the host takes more than ${MAX_BYTES} bytes`);
      pieces.push(piece);
    };
    await abortable(readAll(channel.stdout, take), either).catch((error: unknown) => {
      if (signal.aborted) throw signal.reason;
      throw timeout.aborted
        ? lost('The host did not answer in time.', new UnfinishedProgram())
        : lost(undefined, error);
    });
    const answer = Buffer.concat(pieces);
    const at = answer.indexOf(first);
    if (!answer.subarray(-WHOLE.length).equals(WHOLE))
      throw (at < 0 && (await whyNothingRan(remote, channel, words))) || lost();
    if (at < 0) throw toPrintError(answer.toString('utf8', 0, 200));
    return answer.subarray(at + first.length, -WHOLE.length);
  } finally {
    channel.destroy();
  }
}

/** As printf takes it. */
const printable = (line: Buffer) => line.toString().replaceAll('\n', '\\n');

function lost(detail = 'The connection was lost.', cause?: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', { detail, hint: 'Try again.', cause });
}
