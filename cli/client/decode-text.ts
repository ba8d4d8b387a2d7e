import { CommandError } from '../command-error.ts';

/** These bytes as the text that they are. Throws CommandError for others than UTF-8: the service takes text alone. */
export function decodeText(
  bytes: Uint8Array,
  { what, hint }: { what: string; hint: string },
): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new CommandError(`${what} is not text in UTF-8.`, { hint, cause });
  }
}
