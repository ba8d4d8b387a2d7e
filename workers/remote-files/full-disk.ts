import { posix } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { READ_COMMAND } from './read-script.ts';

/** What C libraries say for ENOSPC and EDQUOT. */
const FULL = /No space left on device|[Qq]uota exceeded/;

/**
 * Whether a file cannot grow, or be made, because the disk or the account's quota is full. SFTP says only that a request
 * failed, and the room that a host tells of knows no quota, so the shell tries the same and says why. What it may have
 * written to the file is for the caller to remove.
 */
export async function isDiskFull(
  host: RemoteExec,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  const channel = await host.exec(READ_COMMAND, signal);
  const abort = () => channel.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    channel.stdin.on('error', () => {});
    channel.stdin.end(script(path));
    channel.stderr.resume();
    return FULL.test((await buffer(channel.stdout)).toString('latin1'));
  } finally {
    signal.removeEventListener('abort', abort);
    channel.destroy();
  }
}

/** Where the folder is missing, it could not be made: then the nearest one that is there. */
const script = (path: string) => `LC_ALL=C; export LC_ALL
d=${quoteWord(posix.dirname(path))}
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
f="$d"/${quoteWord(posix.basename(path))}
{ dd if=/dev/zero bs=65536 count=1 >>"$f"; } 2>&1
`;
