import { WindlassError } from '../../shared/errors/errors.ts';

/**
 * Quotes text as one line for `eval` in sh, with `$nl` for each newline. Throws `invalid_input`
 * on NUL, which no shell can pass on.
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

/** Quotes the path of a folder as one word: `~`, and `~/` at its beginning, are the account's home, as in a shell. */
export function quoteFolder(path: string): string {
  if (path === '~') return '"$HOME"';
  return path.startsWith('~/') ? `"$HOME"${quoteWord(path.slice(1))}` : quoteWord(path);
}
