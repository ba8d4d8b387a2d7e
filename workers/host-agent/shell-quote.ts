import { WindlassError } from '../../shared/errors/errors.ts';

/**
 * Quotes text as one line for `eval` in sh, with `$nl` for each newline, which no package for shell quoting offers.
 * Throws `invalid_input` on a NUL, which no shell can pass to a command.
 */
export function quoteLine(text: string): string {
  if (text.includes('\0'))
    throw new WindlassError('invalid_input', {
      detail: 'a command cannot contain a NUL character.',
    });
  return `'${text.replaceAll("'", `'\\''`).replaceAll('\n', `'"$nl"'`)}'`;
}

/** Quotes text as one word of POSIX sh, newlines included. Throws on NUL, which no argument can contain. */
export function quoteWord(text: string): string {
  if (text.includes('\0')) throw new Error('a NUL character in a shell word');
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
