import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { ExecChannel, RemoteExec } from '../host-agent/exec-channel.ts';
import { quotePath } from './frame-path.ts';
import type { Frame } from './frame-validator.ts';

/** Frames larger than this, in bytes, are refused. */
export const MAX_FRAME_BYTES = 2 ** 28;

/** Starts the stream; after it comes the mark, which precedes everything that is not a frame's bytes. */
export const STREAM_MAGIC = 'windlass-frames';

/**
 * Runs a script from standard input; sh, csh and fish parse it alike. `sh -s` is slower, because bash reads that byte by
 * byte: 8 s for 100,000 paths.
 */
export const FRAME_STREAM_COMMAND = `/bin/sh -c 'eval "$(cat)"'`;

/** Bytes that nobody reads would fill the memory: in ssh2 each byte that is read of one stream makes room for the other, too. */
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
 * A script for /bin/sh that writes these files to standard output for readFrames(), at most `headBytes` of each. It forks
 * once for each file, for `head -c`.
 *
 * The lines before and after each file begin with a mark that is random for each script, so no file can contain it. So no
 * size is needed beforehand, and a file may grow or shrink while it is read. FIFOs and devices are not opened, because
 * they could block.
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
