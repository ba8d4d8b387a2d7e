import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { ExecChannel, RemoteExec } from '../host-agent/exec-channel.ts';
import { SCRIPT_COMMAND } from '../host-agent/no-functions.ts';
import { quotePath } from './frame-path.ts';
import type { Frame } from './frame-validator.ts';

/** Frames larger than this, in bytes, are refused. */
export const MAX_FRAME_BYTES = 2 ** 28;

/** Starts the stream. The mark follows, which precedes everything but frames' bytes. */
export const STREAM_MAGIC = 'windlass-frames';

/** Runs a script from standard input. */
export const FRAME_STREAM_COMMAND = SCRIPT_COMMAND;

/** Unread bytes would fill the memory: in ssh2, reading one stream also makes room for the other. */
export const dropErrors = ({ stderr }: ExecChannel) => stderr.on('error', () => {}).resume();

/** Runs a script of frameStreamScript() on the host and returns its standard output. */
export async function openFrameStream(
  session: RemoteExec,
  script: string,
  signal: AbortSignal,
): Promise<Readable> {
  const channel = await session.exec(FRAME_STREAM_COMMAND, signal);
  dropErrors(channel);
  channel.stdin.end(script);
  return channel.stdout;
}

/**
 * A script for /bin/sh that writes these files, at most `headBytes` of each, for readFrames(), with one fork per file.
 * Lines around each file begin with a random mark, so no size is needed in advance, and a file may change while it is
 * read. FIFOs and devices could block and are not opened.
 */
export function frameStreamScript({
  frames,
  headBytes,
}: {
  frames: readonly Pick<Frame, 'path'>[];
  headBytes?: number;
}): string {
  const mark = randomBytes(16).toString('hex');
  const limit = headBytes ?? MAX_FRAME_BYTES + 1;
  return `LC_ALL=C; export LC_ALL
m=${mark} i=0
f() {
  if [ -f "$1" ]; then
    if [ -r "$1" ]; then
      echo "$m frame $i" || exit 1
      head -c ${limit} "$1" 2>/dev/null
      s=$?
      printf '\\n%s\\n' "$m end $i $s" || exit 1
    else
      echo "$m problem $i unreadable" || exit 1
    fi
  elif [ -d "$1" ]; then
    echo "$m problem $i directory" || exit 1
  elif [ -e "$1" ]; then
    echo "$m problem $i special" || exit 1
  else
    echo "$m problem $i missing" || exit 1
  fi
  i=$((i + 1))
}
printf '\\n%s\\n' "${STREAM_MAGIC} $m"
${frames.map(({ path }) => `f ${quotePath(path)}`).join('\n')}
echo "$m done $i"
`;
}
