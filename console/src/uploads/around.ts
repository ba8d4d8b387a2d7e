/** A line of a file, by its number from 1. */
export interface NumberedLine {
  number: number;
  text: string;
}

const BEFORE = 2;
const AFTER = 2;
/** A longer line is cut. */
const LONGEST = 2_000;

/** The lines around one of a file, read from its beginning. gzip is read through. */
export async function readAround(
  file: Blob,
  row: number,
  { encoding = '', signal }: { encoding?: string; signal?: AbortSignal } = {},
): Promise<NumberedLine[]> {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const isPacked = head[0] === 0x1f && head[1] === 0x8b;
  const bytes = isPacked
    ? file.stream().pipeThrough(new DecompressionStream('gzip'))
    : file.stream();
  const decoder = new TextDecoderStream(encodingOf(head, encoding));
  const reader = bytes
    .pipeThrough(decoder as unknown as TransformStream<Uint8Array<ArrayBuffer>, string>)
    .getReader();
  const lines: NumberedLine[] = [];
  let number = 1;
  let text = '';
  const isNear = () => number >= row - BEFORE && number <= row + AFTER;
  const endLine = () => {
    if (isNear()) lines.push({ number, text: text.replace(/\r$/, '') });
    text = '';
    number++;
  };
  try {
    while (number <= row + AFTER) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      if (done) {
        if (text !== '') endLine();
        break;
      }
      for (let at = 0; at < value.length && number <= row + AFTER; ) {
        const end = value.indexOf('\n', at);
        const stop = end === -1 ? value.length : end;
        if (isNear() && text.length < LONGEST)
          text += value.slice(at, Math.min(stop, at + LONGEST));
        at = stop + 1;
        if (end !== -1) endLine();
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
  return lines;
}

function encodingOf([first, second]: Uint8Array, given: string): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return { 'utf-16': 'utf-16le', 'latin-1': 'windows-1252' }[given] ?? (given || 'utf-8');
}

const DELIMITERS = [',', ';', '\t', '|'];

/** The delimiter that a line has most of. */
export function guessDelimiter(line: string): string {
  const countOf = (delimiter: string) => line.split(delimiter).length;
  return DELIMITERS.reduce((best, each) => (countOf(each) > countOf(best) ? each : best));
}

/** Where the values of a line stand, with their quotes. */
function cellsOf(line: string, delimiter: string): { from: number; to: number }[] {
  const cells: { from: number; to: number }[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at <= line.length; at++) {
    if (line[at] === '"') isQuoted = !isQuoted;
    if (at < line.length && (isQuoted || line[at] !== delimiter)) continue;
    cells.push({ from, to: at });
    from = at + 1;
  }
  return cells;
}

/** The place of a column in a line: one that is named stands where its name does in the first line. */
export function findCell(
  line: string,
  column: string | number | undefined,
  { header, delimiter }: { header: string; delimiter: string },
): { from: number; to: number } | undefined {
  if (column === undefined) return undefined;
  const plain = (text: string) =>
    text
      .trim()
      .replace(/^"(.*)"$/s, '$1')
      .replaceAll('""', '"');
  const names = cellsOf(header, delimiter).map(({ from, to }) => plain(header.slice(from, to)));
  const named = names.indexOf(String(column));
  const at = named === -1 && typeof column === 'number' ? column - 1 : named;
  return cellsOf(line, delimiter)[at];
}
