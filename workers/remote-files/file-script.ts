import { createHash } from 'node:crypto';
import { quoteWord } from '../host-agent/shell-quote.ts';

export interface FileRange {
  /** Absolute. */
  path: string;
  /** The first byte's offset; beyond the end there are no bytes. */
  offset?: number;
  /** Bytes at most. */
  length?: number;
}

const BLOCK_BYTES = 65_536;
/**
 * The most of a file whose size the host does not tell, such as one that a kernel makes up; it is read to its end
 * first.
 */
export const MAX_UNSIZED_BYTES = 1 << 20;

/** Facts about "$f" in words, by the `stat` of GNU or BusyBox, or by that of BSD. */
const stat = (gnu: string, bsd: string) =>
  `stat ${gnu} "$f" 2>/dev/null || stat ${bsd} "$f" 2>/dev/null`;
/** Like stat(), for hosts without `stat`: these columns of `ls -din`. */
const list = (columns: string) => `{ set -- $(ls -din "$f" 2>/dev/null); echo ${columns}; }`;

/** A function of sh that prints the state of the file "$f", through links: inode, size and times, in words. */
export const STATE = `state() { ${stat(`-L -c '%i %s %y %z'`, `-L -f '%i %z %Fm %Fc'`)}; }`;
/** Like STATE, with the device, for what "$f" itself names: it may be a link. */
export const OWN_STATE = `state() { ${stat(`-c '%d %i %s %y %z'`, `-f '%d %i %z %Fm %Fc'`)} || ${list('$1 $6 $7 $8 $9')}; }`;
/** What stays of OWN_STATE while the file is written to. */
export const OWN_IDENTITY = `state() { ${stat(`-c '%d %i'`, `-f '%d %i'`)} || ${list('$1')}; }`;

/**
 * Prints size, state and bytes, then to stderr the status and the new state: processes left by start-up files may hold
 * the channel open, so that no exit status comes. `ls -n` (POSIX) tells the size, `stat` the state, both of the opened
 * file. `dd` seeks; `tail -c +N` may read up to the offset.
 */
export function scriptToRead(mark: string, { path, offset = 0, length }: FileRange): string {
  return `LC_ALL=C; export LC_ALL
f=${quoteWord(path)}
say() { printf '\\n%s %s\\n' ${mark} "$1"; }
${STATE}
refuse() { if [ -e "$f" ]; then say "$1"; exit 0; fi; } # else it was removed just now: look again
look() {
  if [ -d "$f" ]; then say directory; exit 0; fi
  if [ ! -e "$f" ]; then
    case $(ls -dL "$f" 2>&1) in *': Permission denied') say closed ;; *) say missing ;; esac
    exit 0
  fi
  if [ ! -f "$f" ]; then refuse special; return 1; fi
  if [ ! -r "$f" ]; then refuse unreadable; return 1; fi
  s=$(state)
  set -- $(ls -nL "$f" 2>/dev/null)
  case "$5" in ''|*[!0-9]*) refuse unreadable; return 1 ;; esac
  z=$5
  exec 3<"$f"
  set -- $(state)
  [ "$1" = "\${s%% *}" ]
}
set -f
look || look || look
say "$z"
set -- $s
printf '%s\\n' "$*"
if [ "$z" -eq 0 ]; then head -c ${MAX_UNSIZED_BYTES + 1} <&3; e=$?; printf '\\n%s\\n' ${mark}
elif [ ${offset} -lt "$z" ]; then ${printRange({ offset, length })}; e=$?
else e=0
fi
set -- $(state)
printf '\\n%s %s %s\\n' ${mark} $e "$*" >&2
exit $e
`;
}

/** A command that prints a range of the file at descriptor 3, or all that follows the offset. */
export function printRange({ offset, length }: { offset: number; length?: number }): string {
  if (offset === 0) return length === undefined ? 'cat <&3' : `head -c ${length} <&3`;
  const blocks = Math.floor(offset / BLOCK_BYTES);
  const rest = offset % BLOCK_BYTES;
  const limit = length === undefined ? '' : ` | head -c ${length}`;
  return `dd bs=${BLOCK_BYTES} skip=${blocks} 2>/dev/null <&3 | tail -c +${rest + 1}${limit}`;
}

/** A file's state, as the script prints it: its inode, its size, and more. */
export interface FileState {
  inode: string;
  size: number;
  text: string;
}

/** Undefined for anything but a state on one line. */
export function readState(text: string): FileState | undefined {
  const [, inode = '', size] = /^(\d+) (\d+) [ \d.:+-]+$/.exec(text) ?? [];
  return size === undefined ? undefined : { inode, size: Number(size), text };
}

/** The entity tag of a state: another one after each change. */
export const tagOf = (state: FileState | undefined): string | undefined =>
  state && createHash('sha256').update(state.text).digest('hex').slice(0, 32);

/**
 * What happened to a file in its place. One that is `longer` was appended to or written anew, which isAppended() tells.
 * A replaced file was left as it was.
 */
export function compareStates(
  before: FileState | undefined,
  after: FileState | undefined,
): 'same' | 'longer' | 'changed' {
  if (!before || !after || before.inode !== after.inode || before.text === after.text)
    return 'same';
  return after.size > before.size ? 'longer' : 'changed';
}
