import { posix } from 'node:path';
import {
  quoteWord,
  readMode,
  runScript,
} from '../../../clients/typescript/src/pieces/script-on-host.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';

/** What a path names on a host. */
export interface Place {
  /** Absolute. */
  path: string;
  isFolder: boolean;
  /** Permissions, where there is something. */
  mode: number | undefined;
}

/** Looks what is at a path; a relative one is in the account's home. */
export async function findOnHost(session: Session, path: string): Promise<Place> {
  const { output } = await runScript(
    session,
    `cd || exit 1
t=${quoteWord(path)}
case $t in /*) ;; *) t=$PWD/$t ;; esac
k=file
[ ! -d "$t" ] || k=folder
set -f
set -- $(ls -ndL "$t" 2>/dev/null)
printf '%s %s %s' "$k" "\${1:--}" "$t"
`,
  );
  const [, kind, permissions = '', found = ''] = /^(\w+) (\S+) (.*)$/s.exec(output) ?? [];
  return {
    path: found,
    isFolder: kind === 'folder',
    mode: readMode(permissions),
  };
}

/** The path of a file to be put there; in a folder it keeps its name, as with cp. */
export async function targetOnHost(session: Session, path: string, name: string): Promise<string> {
  const asked = /(^|\/)$/.test(path) ? posix.join(path, name) : path;
  const place = await findOnHost(session, asked);
  return place.isFolder ? posix.join(place.path, name) : place.path;
}
