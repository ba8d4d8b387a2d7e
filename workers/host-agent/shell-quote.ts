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

/**
 * Quotes the path of a folder as one word: `~`, and `~/` at its beginning, are the account's home, as in a shell. Another
 * relative one begins with `./`: `cd` takes `-` for the previous folder and looks names up in CDPATH.
 */
export function quoteFolder(path: string): string {
  if (path === '~') return '"$HOME"';
  if (path.startsWith('~/')) return `"$HOME"${quoteWord(path.slice(1))}`;
  return quoteWord(path === '' || path.startsWith('/') ? path : `./${path}`);
}
