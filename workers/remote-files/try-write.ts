import { posix } from 'node:path';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';

/** What C libraries say for ENOSPC and EDQUOT. */
const FULL = /^No space left on device$|^(?:Disk )?[Qq]uota exceeded$/;

/** Whether these words of a host mean a full disk or an exceeded quota. */
export const meansFull = (words: string | undefined) => words !== undefined && FULL.test(words);

/**
 * Appends 64 KiB to a file by the host's shell and returns the host's words if it refuses: SFTP says only "failure",
 * and the free space reported by a host ignores quotas. The caller removes what was written.
 */
export async function tryWrite(
  host: RemoteExec,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const said = (await askHost(host, script(path), signal)).toString('latin1');
  return /: ([^:\n]{1,100})$/m.exec(said)?.[1];
}

/** A missing directory could not be made: then it tries the nearest existing one, and leaves nothing there. */
const script = (path: string) => `LC_ALL=C; export LC_ALL
d=${quoteWord(posix.dirname(path))}
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
f="$d"/${quoteWord(posix.basename(path))}
{ dd if=/dev/zero bs=65536 count=1 >>"$f"; } 2>&1
[ "$d" = ${quoteWord(posix.dirname(path))} ] || rm -f "$f"
`;
