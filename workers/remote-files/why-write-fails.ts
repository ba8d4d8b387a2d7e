import { posix } from 'node:path';
import { text } from 'node:stream/consumers';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { READ_COMMAND } from './read-script.ts';

/** What C libraries say for ENOSPC and EDQUOT. */
const FULL = /^No space left on device$|^(?:Disk )?[Qq]uota exceeded$/;

/** Whether the words of a host mean that its disk, or the account's quota, is full. */
export const meansFull = (words: string | undefined) => words !== undefined && FULL.test(words);

/**
 * Why a file cannot grow, or be made, in the words of the host; undefined where it can. SFTP says only that a
 * request failed, and the room that a host tells of knows no quota, so the shell tries the same and says why. What it may
 * have written to the file is for the caller to remove.
 */
export async function whyWriteFails(
  host: RemoteExec,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const channel = await host.exec(READ_COMMAND, signal);
  const abort = () => channel.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    channel.stdin.on('error', () => {});
    channel.stdin.end(script(path));
    channel.stderr.resume();
    const [, words] = /: ([^:\n]{1,100})$/m.exec(await text(channel.stdout)) ?? [];
    return words;
  } finally {
    signal.removeEventListener('abort', abort);
    channel.destroy();
  }
}

/** Where the folder is missing, it could not be made: then the nearest one that is there, in which nothing is left. */
const script = (path: string) => `LC_ALL=C; export LC_ALL
d=${quoteWord(posix.dirname(path))}
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
f="$d"/${quoteWord(posix.basename(path))}
{ dd if=/dev/zero bs=65536 count=1 >>"$f"; } 2>&1
[ "$d" = ${quoteWord(posix.dirname(path))} ] || rm -f "$f"
`;
