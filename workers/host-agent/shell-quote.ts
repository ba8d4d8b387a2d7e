import { WindlassError } from '../../shared/errors.ts';

/**
 * Text as one line of single-quoted sh, decoded by `eval` with builtins only, where `$nl` holds a newline.
 * No shell can pass on a NUL: text that holds one is refused as `invalid_input`.
 */
export function quoteLine(text: string): string {
  if (text.includes('\0')) {
    throw new WindlassError('invalid_input', { detail: 'a command cannot hold a NUL character.' });
  }
  return `'${text.replaceAll("'", `'\\''`).replaceAll('\n', `'"$nl"'`)}'`;
}

/** The text as one word of POSIX sh: single quotes keep every character, newlines too. Throws on NUL, which no argument can hold. */
export function quoteWord(text: string): string {
  if (text.includes('\0')) throw new Error('a NUL character in a shell word');
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
