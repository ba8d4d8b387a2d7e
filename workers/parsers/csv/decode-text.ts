import { createReadStream } from 'node:fs';
import type { Encoding } from '../../../shared/uploads/parsers.ts';
import { TableError } from '../table/protocol.ts';

/** Windows-1252 at 0x80 to 0x9f, where ISO 8859-1 has control characters; five are undefined. */
const WINDOWS_1252 = '€�‚ƒ„…†‡ˆ‰Š‹Œ�Ž��‘’“”•–—˜™š›œ�žŸ';

/** The encoding that a byte order mark tells. */
export function encodingOfMark(head: Buffer): Encoding | undefined {
  const mark = head.subarray(0, 3).toString('hex');
  if (mark.startsWith('fffe') || mark.startsWith('feff')) return 'utf-16';
  return mark === 'efbbbf' ? 'utf-8' : undefined;
}

/**
 * The byte order of probable UTF-16 without a mark: at least half of the characters are below U+0100 in it, and no zero
 * byte is elsewhere.
 */
export function looksLikeUtf16(head: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  let even = 0;
  let odd = 0;
  for (const [i, byte] of head.entries()) {
    if (byte !== 0) continue;
    if (i % 2 === 0) even++;
    else odd++;
  }
  if (Math.max(even, odd) * 4 < head.length || Math.min(even, odd) > 0 || head.length === 0)
    return undefined;
  return odd > 0 ? 'utf-16le' : 'utf-16be';
}

const MARK = Buffer.from('\ufeff');

/**
 * The length of the byte order marks that a UTF-8 text begins with; programs that join or re-mark files leave several.
 */
export function lengthOfMarks(text: Buffer): number {
  let length = 0;
  while (text.subarray(length, length + MARK.length).equals(MARK)) length += MARK.length;
  return length;
}

/** A text file as UTF-8 without its first byte order marks. UTF-8 input is not checked: scanRecords() does that. */
export async function* decodeText(path: string, encoding: Encoding): AsyncGenerator<Buffer> {
  const bytes = createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>;
  if (encoding === 'utf-8') yield* withoutMarks(bytes);
  else if (encoding === 'utf-16') yield* withoutMarks(decodeUtf16(bytes));
  else yield* decodeBytes(bytes, encoding);
}

async function* withoutMarks(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const piece of text) {
    yield isFirst ? piece.subarray(lengthOfMarks(piece)) : piece;
    isFirst = false;
  }
}

/** The order that the mark says, else the zero bytes, else little-endian. */
function byteOrder(head: Buffer): 'utf-16le' | 'utf-16be' {
  const mark = head.subarray(0, 2).toString('hex');
  if (mark === 'feff') return 'utf-16be';
  return (mark === 'fffe' ? undefined : looksLikeUtf16(head.subarray(0, 512))) ?? 'utf-16le';
}

async function* decodeUtf16(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  const lines = new LineCounter();
  const decode = (piece?: Buffer) => {
    decoder ??= new TextDecoder(byteOrder(piece ?? Buffer.alloc(0)), { fatal: true });
    try {
      return decoder.decode(piece, { stream: piece !== undefined });
    } catch {
      throw new TableError({
        row: lines.row,
        reason: 'on this line or soon after it there are bytes that are not UTF-16',
      });
    }
  };
  for await (const piece of bytes) {
    const text = decode(piece);
    yield Buffer.from(text);
    lines.count(text);
  }
  yield Buffer.from(decode());
}

/** The line that comes next. Lines of a file without line feeds end with carriage returns. */
class LineCounter {
  #feeds = 0;
  #returns = 0;

  get row(): number {
    return 1 + (this.#feeds || this.#returns);
  }

  count(text: string): void {
    this.#feeds += countOf(text, '\n');
    if (this.#feeds === 0) this.#returns += countOf(text, '\r');
  }
}

function countOf(text: string, char: string): number {
  let count = 0;
  for (let at = text.indexOf(char); at >= 0; at = text.indexOf(char, at + 1)) count++;
  return count;
}

async function* decodeBytes(
  bytes: AsyncIterable<Buffer>,
  encoding: 'latin-1' | 'windows-1252',
): AsyncGenerator<Buffer> {
  const lines = new LineCounter();
  for await (const piece of bytes) {
    const text = piece.toString('latin1');
    yield Buffer.from(encoding === 'latin-1' ? text : decodeWindows1252(text, lines));
  }
}

/** Counts the lines of each piece, in their order. */
function decodeWindows1252(text: string, lines: LineCounter): string {
  const decoded = text.replace(/[\x80-\x9f]/g, (char, at: number) => {
    const decoded = WINDOWS_1252[char.charCodeAt(0) - 0x80] as string;
    if (decoded !== '�') return decoded;
    lines.count(text.slice(0, at));
    throw new TableError({
      row: lines.row,
      reason: `there is a byte 0x${char.charCodeAt(0).toString(16)}, which windows-1252 does not have`,
      hint: 'Name another encoding with "encoding".',
    });
  });
  lines.count(text);
  return decoded;
}
