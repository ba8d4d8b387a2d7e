import { WindlassError } from '../error.ts';
import { dropOlderThan, FOLDER_OF_PIECES } from './folder-of-pieces.ts';
import { quoteWord, readMode, runScript, type ScriptSession } from './script-on-host.ts';

/** Where the pieces of a file are on its host. */
export interface Pieces {
  /** Absolute; beside the target, so that a rename puts the file in its place. */
  folder: string;
  /** Absolute; where the given path is a link, the file that it names. */
  target: string;
  /** The permissions of the file that is there, or those of a new one. */
  mode: number;
  /** Bytes of each whole piece that is there, by where it begins in the file. */
  stored: Map<number, number>;
}

/** The name of a piece: where it begins, and its bytes. */
export const nameOf = (start: number, length: number) => `${start}-${length}`;
/** The most names in one line of a script. */
const NAMES = 100;

const RIGHTS_OF_GROUP = 0o070;
const toOctal = (mode: number) => mode.toString(8).padStart(4, '0');

/** The age from which on nobody comes back to pieces. */
const OLD_DAYS = 7;

interface PiecesTarget {
  target: string;
  parents?: boolean;
  /** The name of the folder, `.windlass-WHAT-STATE`: pieces of the same file in another state are removed. */
  folder: string;
}

/**
 * Makes the folder for the pieces of a file, and finds those that are there already. Throws `not_private` where others may
 * write to such a folder, as on shares that keep no modes.
 */
export async function preparePieces(
  session: ScriptSession,
  { target, parents, folder }: PiecesTarget,
  signal?: AbortSignal,
): Promise<Pieces> {
  refuseOtherName(target);
  const { output } = await runScript(
    session,
    `${FOLDER_OF_PIECES}
cd || exit 1
t=${quoteWord(target)}
case $t in /*) ;; *) t=$PWD/$t ;; esac
if [ -L "$t" ]; then t=$(readlink -f "$t") || refuse not_written 'it is a link to nowhere'; fi
! command -v iconv >/dev/null || printf %s "$t" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1 ||
  refuse invalid_input 'its path is not UTF-8'
[ ! -d "$t" ] || refuse not_written 'it is a directory'
[ ! -e "$t" ] || [ -f "$t" ] || refuse not_written 'it is no regular file'
d=\${t%/*}
d=\${d:-/}
[ -d "$d" ] || { ${parents ? 'mkdir -p "$d" 2>/dev/null' : 'false'}; } || refuse not_found 'its folder is missing'
p=$d/${folder}
make() { mkdir -m 700 "$p" 2>/dev/null; enter "$p"; }
make || { drop "$p"; make; } || {
  [ -d "$p" ] || refuse not_written 'nothing can be written beside it'
  rmdir "$p" 2>/dev/null
  refuse not_private "$p is not this account's alone"
}
for other in "$d"/${folder.replace(/\w+$/, '')}*; do
  [ "$other" = "$p" ] || drop "$other"
done${dropOlderThan(OLD_DAYS)}
m=$(ls -ndL "$t" 2>/dev/null) || m=-
for piece in [0-9]*-*; do
  [ -f "$piece" ] || continue
  if [ "$(wc -c <"$piece" 2>/dev/null)" -eq "\${piece#*-}" ] 2>/dev/null; then echo "$piece"; else rm -f "$piece"; fi
done
printf '=%s %s %s' "$(umask)" "\${m%% *}" "$t"
`,
    { signal },
  );
  const [, list = '', umask = '', permissions = '', found = ''] =
    /^((?:\S+\n)*)=(\d+) (\S+) (.*)$/s.exec(output) ?? [];
  refuseOtherName(found);
  return {
    target: found,
    mode: readKept(permissions) ?? 0o666 & ~Number.parseInt(umask, 8),
    folder: `${found.replace(/\/[^/]*$/, '')}/${folder}`,
    stored: new Map(list.split('\n').flatMap(readPiece)),
  };
}

/** Where there is an ACL, as a `+` says, the letters of the group are the most that the ACL gives to anyone. */
function readKept(permissions: string): number | undefined {
  const mode = readMode(permissions);
  return mode !== undefined && permissions.endsWith('+') ? mode & ~RIGHTS_OF_GROUP : mode;
}

/** Refuses a path that is not UTF-8 on its host: decoded, it is the path of another file. */
function refuseOtherName(path: string): void {
  if (!path.includes('\ufffd')) return;
  throw new WindlassError({
    code: 'invalid_input',
    detail: `${path} cannot be written: its path is not UTF-8.`,
    hint: 'Rename what it names on the host, or write it by a command.',
  });
}

/** An entry of `stored`, from the name of a piece; none for other names. Of pieces that begin at one place the last is kept. */
function readPiece(name: string): [number, number][] {
  const [, start, length] = /^(\d+)-(\d+)$/.exec(name) ?? [];
  return start === undefined ? [] : [[Number(start), Number(length)]];
}

interface WholeFile {
  /** The names of its pieces, in order. */
  names: string[];
  size: number;
  /** SHA-256 in hexadecimal digits. */
  digest: string;
  /** Default: the mode of the file that is there. */
  mode?: number;
}

/**
 * Puts the whole file in its place, and removes the pieces in any case. False where they make another file than `size`
 * says, or `digest` if the host has a program for it. Another copy of the file may have joined and removed the pieces
 * before: that is success.
 */
export async function joinPieces(
  session: ScriptSession,
  { folder, target, mode: kept }: Pieces,
  { names, size, digest, mode }: WholeFile,
  signal?: AbortSignal,
): Promise<boolean> {
  const { output } = await runScript(
    session,
    `${FOLDER_OF_PIECES}
p=${quoteWord(folder)}
t=${quoteWord(target)}
w=whole-$$
is_meant() {
  [ -f "$1" ] && [ "$(wc -c <"$1")" -eq ${size} ] || return 1
  set -- $(sha256sum <"$1" 2>/dev/null || shasum -a 256 <"$1" 2>/dev/null || echo "$2")
  [ "$1" = ${digest} ]
}
all() { :${catsOf(names)}; }
end() { drop "$p"; echo "$1"; exit 0; }
umask 077
set -C
copied= meant=
if enter "$p"; then
  rm -f "$w"
  { all >"$w"; } 2>/dev/null && copied=1
  [ "$copied" ] && is_meant "$w" ${digest} && meant=1
  if [ "$meant" ]; then
    m=${toOctal(mode ?? kept)}
    set -- $(ls -ndL "$t" 2>/dev/null)
    [ -z "$4" ] || chgrp "$4" "$w" 2>/dev/null || m=${toOctal(mode ?? kept & ~RIGHTS_OF_GROUP)}
    chmod "$m" "$w" 2>/dev/null
    sync "$w" 2>/dev/null
    [ ! -d "$t" ] && mv -f "$w" "$t" 2>/dev/null && end whole
  fi
  rm -f "$w"
  is_meant "$t" '' && end whole
  [ -z "$meant" ] || refuse not_written 'it cannot be replaced'
  [ "$copied" ] || [ "$(all 2>/dev/null | wc -c)" -ne ${size} ] || refuse not_written 'there is no room for it'
else
  is_meant "$t" '' && end whole
  drop "$p"
  [ ! -d "$p" ] || refuse not_written "$p is not this account's alone"
fi
end other
`,
    { signal },
  );
  return output === 'whole\n';
}

/** Removes the pieces, where nobody is to go on with them. */
export async function removePieces(
  session: ScriptSession,
  { folder }: Pieces,
  signal: AbortSignal,
): Promise<void> {
  await runScript(
    session,
    `${FOLDER_OF_PIECES}drop ${quoteWord(folder)}
exit 0`,
    { signal },
  );
}

/** Commands that print the pieces in order, on several lines: a shell bounds the length of a line. */
function catsOf(names: string[]): string {
  let text = '';
  for (let at = 0; at < names.length; at += NAMES)
    text += ` &&\n  cat ${names.slice(at, at + NAMES).join(' ')}`;
  return text;
}
