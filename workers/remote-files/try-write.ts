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
 * Looks for the file and writes 64 KiB to a new one beside the temporary one by the host's shell, and returns the host's
 * words if it refuses: SFTP says only "failure", and the free space reported by a host ignores quotas. Nothing is written
 * to a file that is there, which another account may have put in the way.
 */
export async function tryWrite(
  host: RemoteExec,
  names: { path: string; temporary: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  return causeIn((await askHost(host, script(names), signal)).toString('latin1'));
}

/** A missing directory could not be made: then it tries the nearest existing one, and leaves nothing there. */
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
f="$d"/${quoteWord(posix.basename(temporary))}.$$
set -C
{ dd if=/dev/zero bs=65536 count=1 >"$f"; } 2>&1
rm -f "$f"
`;
