import type { Session } from '../../../clients/typescript/src/session.ts';
import { quoteWord } from '../../../workers/host-agent/shell-quote.ts';
import { CommandError } from '../../command-error.ts';

/** Where the pieces of a file are on its host. */
export interface Pieces {
  /** Absolute; beside the target, so that a rename puts the file in its place. */
  folder: string;
  /** Absolute; where it was a link, what that names. */
  target: string;
  /** Bytes of the pieces that are there, by name. */
  stored: Map<string, number>;
}

interface Place {
  target: string;
  parents: boolean;
  /** The name of the folder, `.windlass-WHAT-STATE`: pieces of the same file in another state are removed. */
  folder: string;
}

/** Makes the folder for the pieces of a file, and finds those that are there already. */
export async function preparePieces(
  session: Session,
  { target, parents, folder }: Place,
): Promise<Pieces> {
  const { output } = await runScript(
    session,
    `cd || exit 1
t=${quoteWord(target)}
case $t in /*) ;; *) t=$PWD/$t ;; esac
if [ -L "$t" ]; then t=$(readlink -f "$t") || refuse 'it is a link to nowhere'; fi
[ ! -d "$t" ] || refuse 'it is a directory'
[ ! -e "$t" ] || [ -f "$t" ] || refuse 'it is no regular file'
d=\${t%/*}
d=\${d:-/}
[ -d "$d" ] || { ${parents ? 'mkdir -p "$d"' : 'false'}; } || refuse 'its folder is missing; add --parents to make it'
p=$d/${folder}
(umask 077; mkdir -p "$p") || refuse 'nothing can be written beside it'
for other in "$d"/${folder.replace(/\w+$/, '')}*; do
  [ "$other" = "$p" ] || [ ! -d "$other" ] || rm -rf "$other"
done
cd "$p" || exit 1
for piece in [0-9]*; do
  [ ! -f "$piece" ] || printf '%s %s\\n' "$piece" "$(wc -c <"$piece")"
done
printf '=%s' "$t"
`,
  );
  const [, list = '', found = ''] = /^((?:\d+ +\d+\n)*)=(.*)$/s.exec(output) ?? [];
  const stored = list.split('\n').map(line => line.split(/ +/, 2));
  return {
    target: found,
    folder: `${found.replace(/\/[^/]*$/, '')}/${folder}`,
    stored: new Map(stored.map(([name = '', size]) => [name, Number(size)])),
  };
}

/**
 * Puts the whole file in its place, and removes the pieces. False where they are not the file that was meant; they are gone
 * then. The digest is looked at where the host has a program for it.
 */
export async function joinPieces(
  session: Session,
  { folder, target }: Pieces,
  { size, digest, mode }: { size: number; digest: string; mode: number },
): Promise<boolean> {
  const { output } = await runScript(
    session,
    `p=${quoteWord(folder)}
t=${quoteWord(target)}
cd "$p" || refuse 'another copy of it has removed the pieces'
umask 077
w=whole-$$
cat [0-9]* >"$w" || { rm -f "$w"; refuse 'there is no room for it'; }
set -- $(sha256sum "$w" 2>/dev/null || shasum -a 256 "$w" 2>/dev/null || echo ${digest})
if [ "$(wc -c <"$w")" -ne ${size} ] || [ "$1" != ${digest} ]; then cd /; rm -rf "$p"; echo other; exit 0; fi
chmod ${mode.toString(8).padStart(4, '0')} "$w" && [ ! -d "$t" ] || refuse 'it cannot be replaced'
sync "$w" 2>/dev/null
mv -f "$w" "$t" || refuse 'it cannot be replaced'
cd /
rm -rf "$p"
echo whole
`,
  );
  return output === 'whole\n';
}

/** Runs a script of POSIX sh, which names its target `t` and says why it does not go on by `refuse`. */
async function runScript(session: Session, script: string) {
  const stdin = `LC_ALL=C; export LC_ALL
refuse() { printf '%s cannot be written: %s' "$t" "$1" >&2; exit 9; }
${script}`;
  const ended = await session.run('/bin/sh', { stdin, name: 'windlass cp' }).wait();
  if (ended.returncode === 0) return ended;
  const said = ended.errors.trim() || `the host's shell ended with ${ended.returncode}`;
  throw new CommandError(`${said}.`, { hint: 'Nothing was changed there.' });
}
