import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { abortableOpen } from '../../shared/abort.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { ExecChannel, RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { ByteReader } from './byte-reader.ts';

export interface ReadFileOptions {
  /** Absolute. */
  path: string;
  /** Of the first byte; past the end of the file there are no bytes. */
  offset?: number;
  /** Bytes at most. */
  length?: number;
  signal?: AbortSignal;
}

export interface RemoteFile {
  /** Of the whole file, in bytes, when it was opened; the file may change while it is read. */
  size: number;
  /** Names the file's state then, another one after each change; undefined where the host's programs do not tell. */
  tag: string | undefined;
  /** The requested bytes. Fails with `remote_connection_failed` if the connection is lost; destroy it to stop reading. */
  bytes: Readable;
}

/** Of what start-up files may print before the stream. */
const MAX_PRINTED_BYTES = 1 << 20;
const BLOCK_BYTES = 65_536;

/**
 * Opens a file on the session's host and streams it over an exec channel, without the agent. Throws `not_found`,
 * `invalid_input` if it is not a regular file, `forbidden` if the account may not read it, and
 * `remote_connection_failed`; each error names the path.
 */
export async function openRemoteFile(
  session: RemoteExec,
  options: ReadFileOptions,
): Promise<RemoteFile> {
  const { path, signal } = options;
  const mark = randomBytes(16).toString('hex');
  const opening = session.exec(READ_COMMAND, signal);
  const channel = signal
    ? await abortableOpen(opening, signal, late => late.destroy())
    : await opening;
  // Errors show in the exit status.
  channel.stderr.resume();
  channel.stdin.on('error', () => {});
  channel.stdin.end(readScript(mark, options));
  const reader = new ByteReader(channel.stdout, signal);
  try {
    const found = await readHeader(reader, mark);
    // Numbers of fifteen digits are exact, and larger than any file.
    if (!/^\d{1,15}$/.test(found)) throw toError(path, found);
    const { bytes: state, isWhole } = await reader.readUntil(Buffer.from('\n'), 4_096);
    if (!isWhole) throw new Error('its stat prints too much');
    const tag = tagOf(state);
    const bytes = Readable.from(readToEnd(reader, channel, path), { objectMode: false });
    // Not in the generator's `finally`, which does not run if the stream is destroyed before the first read.
    bytes.once('close', () => {
      reader.close();
      channel.destroy();
    });
    return { size: Number(found), tag, bytes };
  } catch (error) {
    reader.close();
    channel.destroy();
    signal?.throwIfAborted();
    throw error instanceof WindlassError ? error : connectionLost(path, error);
  }
}

/** Runs a script from standard input; sh, csh and fish parse it alike. */
const READ_COMMAND = `/bin/sh -c 'eval "$(cat)"'`;

/**
 * Prints the size, the state and the bytes. The size comes from `ls -n`, whose fields POSIX defines, without reading the
 * file; the state from `stat`, which GNU, BusyBox and BSD have: inode, size and the times of the last changes, as fine as they
 * are kept. `dd` seeks to the block of the offset, because `tail -c +N` may read the file up to there.
 */
function readScript(mark: string, { path, offset = 0, length }: ReadFileOptions): string {
  const blocks = Math.floor(offset / BLOCK_BYTES);
  const rest = offset % BLOCK_BYTES;
  const limit = length === undefined ? '' : ` | head -c ${length}`;
  const from = `dd bs=${BLOCK_BYTES} skip=${blocks} 2>/dev/null <"$f" | tail -c +${rest + 1}${limit}`;
  const whole = length === undefined ? 'cat <"$f"' : `head -c ${length} <"$f"`;
  return `LC_ALL=C; export LC_ALL
f=${quoteWord(path)}
say() { printf '\\n%s %s\\n' ${mark} "$1"; }
if [ -d "$f" ]; then say directory; exit 0; fi
if [ ! -e "$f" ]; then say missing; exit 0; fi
if [ ! -f "$f" ]; then say special; exit 0; fi
if [ ! -r "$f" ]; then say unreadable; exit 0; fi
set -f
set -- $(ls -nL "$f" 2>/dev/null)
case "$5" in ''|*[!0-9]*) say unreadable; exit 0;; esac
z=$5
say "$z"
s=$(stat -L -c '%i %s %y %z' "$f" 2>/dev/null) || s=$(stat -L -f '%i %z %Fm %Fc' "$f" 2>/dev/null) || s=
set -- $s
printf '%s\\n' "$*"
[ ${offset} -lt "$z" ] || exit 0
${offset === 0 ? whole : from}
`;
}

async function readHeader(reader: ByteReader, mark: string): Promise<string> {
  const { isWhole } = await reader.readUntil(Buffer.from(`\n${mark} `), MAX_PRINTED_BYTES);
  if (!isWhole) throw new Error('the start-up files print too much');
  return (await reader.readUntil(Buffer.from('\n'), 64)).bytes.toString('latin1');
}

/** What is no state of one line is none. */
function tagOf(state: Buffer): string | undefined {
  if (!/^\d+ \d+ [ \d.:+-]+$/.test(state.toString('latin1'))) return undefined;
  return createHash('sha256').update(state).digest('hex').slice(0, 32);
}

async function* readToEnd(
  reader: ByteReader,
  channel: ExecChannel,
  path: string,
): AsyncGenerator<Buffer> {
  try {
    for (let bytes = await reader.read(); bytes; bytes = await reader.read()) yield bytes;
    // Only the exit status distinguishes the end of the file from a lost connection.
    const { code } = await channel.closed;
    if (code === null) throw connectionLost(path);
    if (code !== 0) throw toError(path, 'broken');
  } catch (error) {
    const isAborted = error instanceof Error && error.name === 'AbortError';
    throw error instanceof WindlassError || isAborted ? error : connectionLost(path, error);
  }
}

function toError(path: string, found: string): WindlassError {
  switch (found) {
    case 'missing':
      return new WindlassError('not_found', {
        detail: `Not found: there is no ${path} on the host.`,
        hint: 'Check the path; it is read as the account of the session sees it.',
      });
    case 'directory':
    case 'special':
      return new WindlassError('invalid_input', {
        detail: `Invalid parameters: ${path} is ${found === 'directory' ? 'a directory' : 'no regular file'}.`,
        hint: 'Give the path of a file.',
      });
    case 'unreadable':
      return new WindlassError('forbidden', {
        detail: `Forbidden: the account on the host may not read ${path}.`,
        hint: "Change the file's permissions, or open a session as another account.",
      });
    default:
      return new WindlassError('remote_connection_failed', {
        detail: `Remote connection failed: ${path} could not be read to its end.`,
        hint: "Check the host's disk, then try again.",
      });
  }
}

function connectionLost(path: string, cause?: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: `Remote connection failed: the connection was lost while ${path} was read.`,
    hint: 'Try again.',
    cause,
  });
}
