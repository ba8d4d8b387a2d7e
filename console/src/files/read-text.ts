/** Byte order marks, and what has zeros without one. */
const MARKS = [
  { mark: [0xff, 0xfe], encoding: 'utf-16le' },
  { mark: [0xfe, 0xff], encoding: 'utf-16be' },
] as const;

/** The text that a file begins with: UTF-8, UTF-16 with its mark, else windows-1252. Undefined where it is no text. */
export function readText(bytes: Uint8Array): string | undefined {
  const marked = MARKS.find(({ mark }) => mark.every((byte, at) => bytes[at] === byte));
  if (marked) return new TextDecoder(marked.encoding).decode(bytes, { stream: true });
  if (bytes.includes(0)) return undefined;
  try {
    // The last character may be cut.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** What separates the values of a table's first line. */
export function findSeparator(text: string): string {
  const [line = ''] = text.split(/[\r\n]/, 1);
  const counts = [',', ';', '\t', '|'].map(sign => ({ sign, count: line.split(sign).length }));
  return counts.reduce((most, next) => (next.count > most.count ? next : most)).sign;
}
