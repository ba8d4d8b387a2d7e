import { WindlassError } from '../error.ts';

/** A session, as far as a script needs one. */
export interface ScriptSession {
  readonly sid: string;
  run(
    command: string,
    options: { stdin: string; name: string; signal?: AbortSignal },
  ): {
    wait(): Promise<{ returncode: number; output: string; errors: string; job: string }>;
  };
}

/**
 * Runs a POSIX sh script on a host, which names its target `t` and reports a failure by `refuse`, with an error's code.
 * Throws that error.
 */
export async function runScript(
  session: ScriptSession,
  script: string,
  { signal }: { signal?: AbortSignal } = {},
): Promise<{ output: string }> {
  const stdin = `LC_ALL=C; export LC_ALL
refuse() { printf '%s:%s cannot be written: %s' "$1" "$t" "$2" >&2; exit 9; }
${script}`;
  const ended = await session.run('/bin/sh', { stdin, name: 'windlass cp', signal }).wait();
  if (ended.returncode === 0) return ended;
  const [, code, said] = /^(\w+):(.*)$/s.exec(ended.errors.trim()) ?? [];
  throw new WindlassError(
    {
      code: code ?? 'not_written',
      detail: `${said || ended.errors.trim() || `the host's shell ended with ${ended.returncode}`}.`,
      hint: 'Nothing was changed there.',
    },
    { job: ended.job },
  );
}

/** As one word of a script. */
export function quoteWord(text: string): string {
  if (text.includes('\0')) throw new TypeError('A path on a host has no NUL character.');
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** As `ls -l` prints them, such as `-rw-r--r--`; the letters of set-user-id and sticky are not taken. */
export function readMode(permissions: string): number | undefined {
  const letters = /^.([-r][-w].[-r][-w].[-r][-w].)/.exec(permissions)?.[1];
  if (letters === undefined) return undefined;
  const bits = [...letters].map(letter => (/[rwxst]/.test(letter) ? '1' : '0'));
  return Number.parseInt(bits.join(''), 2);
}
