import { quoteWord } from '../host-agent/shell-quote.ts';

/**
 * A host's path as text. Bytes that are not UTF-8 become lone surrogates, U+DC80 for 0x80, as by Python's
 * `surrogateescape`; no path of a request has such characters.
 */
export function decodePath(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  if (Buffer.from(text).equals(bytes)) return text;
  let decoded = '';
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at);
    decoded += length
      ? bytes.toString('utf8', at, at + length)
      : String.fromCharCode(0xdc00 + (bytes[at] ?? 0));
    at += length || 1;
  }
  return decoded;
}

/** The bytes of the UTF-8 character that begins there; 0 if none does. */
function characterLength(bytes: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length++) {
    const character = bytes.toString('utf8', at, at + length);
    if (!character.includes('\ufffd')) return length;
  }
  return bytes.toString('latin1', at, at + 3) === 'ï¿½' ? 3 : 0;
}

/** The path's bytes on the host. */
export function encodePath(path: string): Buffer {
  if (!ESCAPED.test(path)) return Buffer.from(path);
  const parts = [...path].map(character =>
    ESCAPED.test(character)
      ? Buffer.from([character.charCodeAt(0) - 0xdc00])
      : Buffer.from(character),
  );
  return Buffer.concat(parts);
}

/** A byte that is not UTF-8. It is looked for among characters, because some have it as their second half. */
const ESCAPED = /[\udc80-\udcff]/u;
const isEscaped = (path: string) => [...path].some(character => ESCAPED.test(character));

/** Quotes a path as one word of POSIX sh; bytes that are not UTF-8 are written by printf there. */
export function quotePath(path: string): string {
  if (!ESCAPED.test(path) || !isEscaped(path)) return quoteWord(path);
  const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`;
  // sh cuts line feeds off the end of what a command prints.
  const [end = ''] = /(?<!\n)\n+$/.exec(path) ?? [];
  const format = [...path.slice(0, path.length - end.length)].map(character => {
    if (ESCAPED.test(character)) return octal(character.charCodeAt(0) - 0xdc00);
    if (/^[\w./ -]$/.test(character)) return character;
    return [...Buffer.from(character)].map(octal).join('');
  });
  return `"$(printf '${format.join('').replaceAll('%', '%%')}')"${end && quoteWord(end)}`;
}

/** The path on one line: control characters and bytes that are not UTF-8 are escaped. */
export function showPath(path: string): string {
  return [...path]
    .map(character => {
      if (ESCAPED.test(character)) return `\\x${(character.charCodeAt(0) - 0xdc00).toString(16)}`;
      return /\p{Cc}/u.test(character) ? JSON.stringify(character).slice(1, -1) : character;
    })
    .join('');
}
