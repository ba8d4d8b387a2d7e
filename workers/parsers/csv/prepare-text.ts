import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Encoding, ParserParameters } from '../../../shared/uploads/parsers.ts';
import { TableError } from '../table/protocol.ts';
import { collapseSpaces } from './collapse-spaces.ts';
import { decodeText, encodingOfMark, lengthOfMarks, looksLikeUtf16 } from './decode-text.ts';
import { MAX_RECORD_BYTES, splitRecord, walkRecord } from './dialect.ts';
import { inferDelimiter, lengthOfSign } from './infer-delimiter.ts';

/**
 * A file as UTF-8 that begins with its first record: DuckDB misreads other files if that record contains line breaks.
 */
export interface PreparedText {
  path: string;
  encoding: Encoding;
  delimiter: string;
  /** Lines before the first record. */
  lines: number;
  /** Whether some are blank lines, which are missing values if the first record is no header. */
  hasBlankValues: boolean;
  /** Whether the first record is certain to be a header. */
  hasHeader: boolean;
}

/** The file that the text is written to. */
export const textIn = (scratch: string): string => join(scratch, 'text.csv');

/** Returns the file itself if there is nothing to change. */
export async function prepareText(
  { input, scratch }: { input: string; scratch: string },
  parameters: ParserParameters<'csv'>,
): Promise<PreparedText> {
  const start = await readStart(input, 512);
  const mark = encodingOfMark(start);
  if (!parameters.encoding && !mark && looksLikeUtf16(start))
    throw new TableError({
      row: 1,
      reason: 'there are NUL characters: the file looks like UTF-16 without a byte order mark',
      hint: 'Name "encoding": "utf-16", or save the file as UTF-8.',
    });
  const encoding = parameters.encoding ?? mark ?? 'utf-8';
  const { quote = '"', comment, skip = 0, decimal = '.', tolerance = 0 } = parameters;
  const decoded = () => decodeText(input, encoding);
  const preamble = await findPreamble(decoded(), { comment, skip });
  const head = await takeBytes(dropBytes(decoded(), preamble.bytes), MAX_RECORD_BYTES);
  // A file that begins with a mark may follow lines that were put before it.
  const marks = lengthOfMarks(head);
  const record = head.subarray(marks);
  const delimiter =
    parameters.delimiter ??
    preamble.delimiter ??
    inferDelimiter(record, { quote, decimal, comment, tolerance });
  const isAtSpaces = delimiter === ' ';
  const sign =
    isAtSpaces && parameters.header !== false
      ? lengthOfSign(record, { quote, comment, tolerance })
      : 0;
  const hasBlankValues =
    preamble.blank.lines > 0 && marks === 0 && hasOneValue(record, { quote, delimiter });
  const isBlankKept = hasBlankValues && parameters.header === false;
  const begin = isBlankKept ? preamble.bytes - preamble.blank.bytes : preamble.bytes + marks + sign;
  const lines = preamble.lines - (isBlankKept ? preamble.blank.lines : 0);
  const records = () => dropBytes(decoded(), begin);
  const isAsItIs = encoding === 'utf-8' && !mark && begin === 0 && !isAtSpaces;
  const path = isAsItIs ? input : textIn(scratch);
  if (!isAsItIs) {
    const text = isAtSpaces ? collapseSpaces(records(), { quote, comment }) : records();
    await pipeline(Readable.from(text), createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  }
  return {
    path,
    encoding,
    delimiter,
    lines,
    hasBlankValues: hasBlankValues && !isBlankKept,
    hasHeader: sign > 0,
  };
}

async function readStart(path: string, length: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

interface Preamble {
  bytes: number;
  lines: number;
  /** The part of it that are blank lines right before the first record. */
  blank: { bytes: number; lines: number };
  /** What a first line such as sep=; of Excel says. */
  delimiter?: string;
}

/** Finds what precedes the first record: the line sep=, lines to skip, blank lines, comments. */
async function findPreamble(
  text: AsyncIterable<Buffer>,
  { comment, skip }: { comment: string | undefined; skip: number },
): Promise<Preamble> {
  const preamble: Preamble = { bytes: 0, lines: 0, blank: { bytes: 0, lines: 0 } };
  const isPart = (written: string) => {
    const line = written.replace(/^\ufeff+/, '');
    const separator = preamble.lines === 0 ? /^"?sep=([\t -~])"?$/i.exec(line)?.[1] : undefined;
    preamble.delimiter ??= separator;
    return (
      preamble.lines < skip ||
      separator !== undefined ||
      line === '' ||
      (comment !== undefined && line.startsWith(comment))
    );
  };
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of text) {
    rest = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
    let at = 0;
    for (;;) {
      const end = lineEnd(rest, at);
      // A CR at the end may be the first half of a line break.
      if (end === undefined || (rest[end] === 13 && end === rest.length - 1)) break;
      if (!isPart(rest.toString('utf8', at, end))) return preamble;
      const next = end + (rest[end] === 13 && rest[end + 1] === 10 ? 2 : 1);
      if (end > at || preamble.lines < skip) preamble.blank = { bytes: 0, lines: 0 };
      else
        preamble.blank = {
          bytes: preamble.blank.bytes + next - at,
          lines: preamble.blank.lines + 1,
        };
      preamble.bytes += next - at;
      preamble.lines++;
      at = next;
    }
    rest = rest.subarray(at);
    if (rest.length > MAX_RECORD_BYTES) return preamble;
  }
  // The last line, without a line break or with a CR.
  if (rest.length > 0 && isPart(rest.toString('utf8').replace(/\r$/, ''))) {
    preamble.bytes += rest.length;
    preamble.lines++;
  }
  return preamble;
}

function hasOneValue(
  head: Buffer,
  { quote, delimiter }: { quote: string; delimiter: string },
): boolean {
  const { end } = walkRecord(head, quote, byte => byte === delimiter.charCodeAt(0));
  return splitRecord(head.subarray(0, end), { quote, delimiter }).length === 1;
}

function lineEnd(bytes: Buffer, from: number): number | undefined {
  const lf = bytes.indexOf(10, from);
  const cr = bytes.subarray(0, lf < 0 ? bytes.length : lf).indexOf(13, from);
  if (cr >= 0) return cr;
  return lf < 0 ? undefined : lf;
}

async function* dropBytes(source: AsyncIterable<Buffer>, count: number): AsyncGenerator<Buffer> {
  let left = count;
  for await (const piece of source) {
    if (left < piece.length) yield left > 0 ? piece.subarray(left) : piece;
    left = Math.max(0, left - piece.length);
  }
}

async function takeBytes(source: AsyncIterable<Buffer>, count: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of source) {
    pieces.push(piece);
    length += piece.length;
    if (length >= count) break;
  }
  return Buffer.concat(pieces).subarray(0, count);
}
