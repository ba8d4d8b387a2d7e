import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { abortableOpen } from '../../shared/abort.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { ExecChannel, RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { ByteReader } from './byte-reader.ts';

export interface ReadFileOptions {
  /** Absolute. */
  path: string;
  /** The first byte that is wanted; past the end there are none. */
  offset?: number;
  /** Bytes at most. */
  length?: number;
  signal?: AbortSignal;
}

export interface RemoteFile {
  /** Of the whole file, in bytes, when it was opened: it may have grown or shrunk by the time it is read. */
  size: number;
  /** What was asked for. Ends with `remote_connection_failed` where the link was lost; destroy it to read no more. */
  bytes: Readable;
}

/** Start-up files may print before the stream begins; more than this is no stream of ours. */
const NOISE_BYTES = 1 << 20;
const BLOCK = 65_536;

/**
 * Opens a file on the session's host and streams it over an exec channel of its own, agent or not. Throws `not_found`
 * where there is none, `invalid_input` for what is no regular file, `forbidden` where the account may not read it, and
 * `remote_connection_failed`; each names the path.
 */
export async function openRemoteFile(
  session: RemoteExec,
  { path, offset = 0, length, signal }: ReadFileOptions,
): Promise<RemoteFile> {
  const mark = randomBytes(16).toString('hex');
  const opening = session.exec(READ_COMMAND, signal);
  const channel = signal
    ? await abortableOpen(opening, signal, late => late.destroy())
    : await opening;
  // What the host says besides is in the exit status.
  channel.stderr.resume();
  channel.stdin.on('error', () => {});
  channel.stdin.end(readScript({ mark, path, offset, length }));
  const reader = new ByteReader(channel.stdout, signal);
  try {
    const found = await readHeader(reader, mark);
    // Fifteen digits are exact, and more than any file has.
    if (!/^\d{1,15}$/.test(found)) throw problemWith(path, found);
    const bytes = Readable.from(readToEnd({ reader, channel, path }), { objectMode: false });
    // Not in the generator's finally: of one that is destroyed before it was read, nothing runs.
    bytes.once('close', () => {
      reader.close();
      channel.destroy();
    });
    return { size: Number(found), bytes };
  } catch (error) {
    reader.close();
    channel.destroy();
    signal?.throwIfAborted();
    throw error instanceof WindlassError ? error : lost(path, error);
  }
}

/** Runs a script from standard input, in characters that sh, csh and fish read alike. */
const READ_COMMAND = `/bin/sh -c 'eval "$(cat)"'`;

/**
 * The size comes from `ls -n`, whose fields POSIX names, without reading the file. `dd` seeks to a whole block before the
 * offset, where `tail -c +N` alone may read its way there.
 */
function readScript({
  mark,
  path,
  offset,
  length,
}: {
  mark: string;
  path: string;
  offset: number;
  length: number | undefined;
}): string {
  const blocks = Math.floor(offset / BLOCK);
  const rest = offset % BLOCK;
  const limit = length === undefined ? '' : ` | head -c ${length}`;
  const from = `dd bs=${BLOCK} skip=${blocks} 2>/dev/null <"$f" | tail -c +${rest + 1}${limit}`;
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
say "$5"
[ ${offset} -lt "$5" ] || exit 0
${offset === 0 ? whole : from}
`;
}

async function readHeader(reader: ByteReader, mark: string): Promise<string> {
  const { isWhole } = await reader.readUntil(Buffer.from(`\n${mark} `), NOISE_BYTES);
  if (!isWhole) throw new Error('the start-up files print too much');
  return (await reader.readUntil(Buffer.from('\n'), 64)).bytes.toString('latin1');
}

async function* readToEnd({
  reader,
  channel,
  path,
}: {
  reader: ByteReader;
  channel: ExecChannel;
  path: string;
}): AsyncGenerator<Buffer> {
  try {
    for (;;) {
      const bytes = await reader.read();
      if (!bytes) break;
      yield bytes;
    }
    // Only an exit status tells the end of the file from the end of the link.
    const { code } = await channel.closed;
    if (code === null) throw lost(path);
    if (code !== 0) throw problemWith(path, 'broken');
  } catch (error) {
    throw error instanceof WindlassError || isAborted(error) ? error : lost(path, error);
  }
}

const isAborted = (error: unknown) => error instanceof Error && error.name === 'AbortError';

function problemWith(path: string, found: string): WindlassError {
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

function lost(path: string, cause?: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: `Remote connection failed: the link was lost while ${path} was read.`,
    hint: 'Try again.',
    cause,
  });
}
