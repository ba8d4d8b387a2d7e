import { randomBytes } from 'node:crypto';
import { quoteWord } from '../host-agent/shell-quote.ts';

/** Frames larger than this, in bytes, are refused. */
export const MAX_FRAME_BYTES = 2 ** 28;

/** Opens the stream of frames: the mark that follows it stands before everything that is not a frame's bytes. */
export const STREAM_MAGIC = 'windlass-frames';

/**
 * The command that runs a transfer script from its standard input, in characters that sh, csh and fish
 * read alike. `sh -s` would do it too, but bash reads that byte by byte: 8 s for 100,000 paths.
 */
export const TRANSFER_COMMAND = `/bin/sh -c 'eval "$(cat)"'`;

/**
 * A script for /bin/sh that streams these files on standard output, to be read by readFrames() with
 * the same paths; with `headBytes` no more than so many bytes of each. One fork a file: `head -c`,
 * the rest are builtins.
 *
 * Each file is framed by lines that begin with a random mark, made anew for every script, that no
 * file can hold. So no size has to be known before, and a file that grows or shrinks while it is
 * read cannot bring the stream out of step. FIFOs and devices are not opened: they could block.
 */
export function transferScript({
  images,
  headBytes,
}: {
  images: readonly string[];
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
${images.map(path => `f ${quoteWord(path)}`).join('\n')}
echo "$m done $i"
`;
}
