import { WindlassError } from '../../../shared/errors.ts';

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
