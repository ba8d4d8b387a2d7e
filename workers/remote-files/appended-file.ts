import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';
import { type FileState, printRange, STATE } from './file-script.ts';

interface ReadRange {
  path: string;
  offset: number;
  length: number;
  /** In hex, the SHA-256 of the bytes that were read. */
  digest: string;
  /** The file's state when it was opened, where the host tells it. */
  before: FileState | undefined;
}

/**
 * Whether a file that grew while it was read was appended to, and not written anew: then it still has the bytes that
 * were read. True where the host has no program that tells.
 */
export async function isAppended(
  host: RemoteExec,
  { path, offset, length, digest, before }: ReadRange,
  signal: AbortSignal,
): Promise<boolean> {
  const program = `LC_ALL=C; export LC_ALL
f=${quoteWord(path)}
${STATE}
sum() { sha256sum || shasum -a 256 || sha256 -q || openssl dgst -sha256 -r; }
set -f
exec 3<"$f"
set -- $(state)
d=$({ ${printRange({ offset, length })}; } 2>/dev/null | sum 2>/dev/null)
printf '%s %s' "$1" "\${d%% *}"`;
  const said = (await askHost(host, program, signal)).toString('latin1');
  const [, inode, found] = /^(\d*) ([0-9a-f]{64})?$/.exec(said) ?? [];
  if (inode === undefined || (before && inode !== before.inode)) return false;
  return found === undefined || found === digest;
}
