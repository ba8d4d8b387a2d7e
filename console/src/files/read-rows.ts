/** The first rows of a text of separated values (RFC 4180), each value as it is written. Of one that `isCut` the last is left out. */
export function readRows(
  text: string,
  { separator, most, isCut }: { separator: string; most: number; isCut: boolean },
): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  while (at < text.length && rows.length < most) {
    const value = readValue(text, at, separator);
    row.push(value.text);
    at = value.end;
    if (text[at] === separator) {
      at++;
      if (at === text.length) row.push('');
      continue;
    }
    if (text[at] === '\r') at++;
    const isWhole = text[at] === '\n' || !isCut;
    if (text[at] === '\n') at++;
    if (isWhole) rows.push(row);
    row = [];
  }
  return rows;
}

function readValue(text: string, from: number, separator: string): { text: string; end: number } {
  if (text[from] !== '"') {
    let end = from;
    while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r')
      end++;
    return { text: text.slice(from, end), end };
  }
  let value = '';
  for (let at = from + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return { text: value + text.slice(at), end: text.length };
    value += text.slice(at, quote);
    if (text[quote + 1] !== '"') return { text: value, end: quote + 1 };
    value += '"';
    at = quote + 2;
  }
}
