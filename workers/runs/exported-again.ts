import { quoteWord } from '../host-agent/shell-quote.ts';

/** The limit of execve for one argument is 128 KiB. */
const MAX_ARGUMENT_BYTES = 131_000;

/**
 * Lines for sh that set `windlass_again`, what bash is to do before the command: under SSH, Debian's and Red Hat's read .bashrc
 * for each `-c`, which may set what the request has set. Empty for another shell, and for more than one argument holds.
 */
export function setAgain(shell: string, env: Record<string, string>, command: string): string {
  // Some are read-only to bash, which says so.
  const words = Object.entries(env).map(([name, value]) => `export ${name}=${quoteWord(value)}`);
  const again = words.length > 0 ? `{ ${words.join('; ')}; } 2>/dev/null; ` : '';
  if (again === '' || Buffer.byteLength(again + command) > MAX_ARGUMENT_BYTES)
    return "windlass_again=''";
  return `case ${shell} in */bash) windlass_again=${quoteWord(again)} ;; *) windlass_again='' ;; esac`;
}
