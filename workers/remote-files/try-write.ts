import { posix } from 'node:path';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';
import { causeIn } from './host-refusal.ts';

/** What C libraries say for ENOSPC and EDQUOT. */
const FULL = /^No space left on device$|^(?:Disk )?[Qq]uota exceeded$/;

/** Whether these words of a host mean a full disk or an exceeded quota. */
export const meansFull = (words: string | undefined) => words !== undefined && FULL.test(words);

/**
 * Looks for the file and writes 64 KiB beside the temporary one by the host's shell, and returns the host's words if it
 * refuses: SFTP says only "failure", and the free space reported by a host ignores quotas.
 */
export async function tryWrite(
  host: RemoteExec,
  names: { path: string; temporary: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  return causeIn((await askHost(host, script(names), signal)).toString('latin1'));
}

/**
 * Where a missing directory could not be made, it tries the nearest existing one. It makes a file of its own (`set -C`), since
 * who may write there may have put a link in place of any other; nothing of it stays, also where nobody hears the answer.
 */
const script = ({
  path,
  temporary,
}: {
  path: string;
  temporary: string;
}) => `LC_ALL=C; export LC_ALL
e=$(ls -d ${quoteWord(path)} 2>&1 >/dev/null)
case $e in '' | *': No such file or directory') ;; *) printf '%s\n' "$e"; exit ;; esac
d=${quoteWord(posix.dirname(temporary))}
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
f="$d"/${quoteWord(`${posix.basename(temporary)}-room`)}
e=$(
  exec 2>&1
  umask 077
  set -C
  exec 3>"$f" || exit
  dd if=/dev/zero bs=65536 count=1 >&3
  rm -f "$f"
)
printf '%s\n' "$e"
`;
