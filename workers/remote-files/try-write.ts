import { posix } from 'node:path';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';

/** What C libraries say for ENOSPC and EDQUOT. */
const FULL = /^No space left on device$|^(?:Disk )?[Qq]uota exceeded$/;

/** Whether the words of a host mean that its disk, or the account's quota, is full. */
export const meansFull = (words: string | undefined) => words !== undefined && FULL.test(words);

/**
 * Has the shell of the host append 64 KiB to a file. Returns the words in which the host refuses; undefined where it does not.
 * SFTP says only that a request failed, and the free space that a host reports ignores quotas. The caller removes what was
 * written.
 */
export async function tryWrite(
  host: RemoteExec,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const said = (await askHost(host, script(path), signal)).toString('latin1');
  return /: ([^:\n]{1,100})$/m.exec(said)?.[1];
}

/** Where the folder is missing, it could not be made: then the nearest one that is there, in which nothing is left. */
const script = (path: string) => `LC_ALL=C; export LC_ALL
d=${quoteWord(posix.dirname(path))}
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
f="$d"/${quoteWord(posix.basename(path))}
{ dd if=/dev/zero bs=65536 count=1 >>"$f"; } 2>&1
[ "$d" = ${quoteWord(posix.dirname(path))} ] || rm -f "$f"
`;
