import { posix } from 'node:path';
import {
  quoteWord,
  readMode,
  runScript,
} from '../../../clients/typescript/src/pieces/script-on-host.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';

/** What a path names on a host. */
export interface PathOnHost {
  /** Absolute. */
  path: string;
  isFolder: boolean;
  /** Permissions, where there is something. */
  mode: number | undefined;
  /** What the account takes from those of new files. */
  umask: number;
}

/** Looks what is at a path; a relative one is in the account's home. Where it is a folder, at `name` in it, if that is given. */
export async function findOnHost(
  session: Session,
  path: string,
  name?: string,
): Promise<PathOnHost> {
  const inFolder = name === undefined ? '' : `[ ! -d "$t" ] || t=\${t%/}/${quoteWord(name)}`;
  const { output } = await runScript(
    session,
    `cd || exit 1
t=${quoteWord(path)}
case $t in /*) ;; *) t=$PWD/$t ;; esac
${inFolder}
k=file
[ ! -d "$t" ] || k=folder
set -f
set -- $(ls -ndL "$t" 2>/dev/null)
printf '%s %s %s %s' "$k" "$(umask)" "\${1:--}" "$t"
`,
  );
  const [, kind, umask = '', permissions = '', found = ''] =
    /^(\w+) (\d+) (\S+) (.*)$/s.exec(output) ?? [];
  return {
    path: found,
    isFolder: kind === 'folder',
    mode: readMode(permissions),
    umask: Number.parseInt(umask, 8),
  };
}

/** Where a file is to be put there: as of cp, in a folder it keeps its name. */
export const targetOnHost = (session: Session, path: string, name: string): Promise<PathOnHost> =>
  findOnHost(session, /(^|\/)$/.test(path) ? posix.join(path, name) : path, name);
