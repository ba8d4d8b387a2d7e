import { plainText, readSpans, type Span, type Style } from './ansi.ts';
import { BLOCK_BYTES, ByteBlocks } from './byte-blocks.ts';
import { LINES_PER_MARK, LineIndex, LONG_LINE_BYTES } from './line-index.ts';
import { LineTimes } from './line-times.ts';
import { MergedLines, STREAMS, type StreamName } from './merged-lines.ts';

/** A longer line is shown by its beginning, and one that overwrites itself, as progress bars do, by its end. */
const SHOWN_BYTES = 16 << 10;
/** Bytes that are kept of both streams; older ones are read again where they are looked at. */
const KEPT_BYTES = 64 << 20;
/** A longer line is searched and copied no further than it is shown. */
const WHOLE_BYTES = 16 << 20;
/** Fewer are looked for one by one. */
const FEW_LINES = 16;

export interface LogLine {
  stream: StreamName;
  spans: Span[];
  /** Bytes that are not shown. */
  hidden: number;
}

/** Which bytes of which stream are looked at and not here. */
export interface Missing {
  stream: StreamName;
  block: number;
}

interface Stream {
  blocks: ByteBlocks;
  index: LineIndex;
  times: LineTimes;
}

/** What a job has printed: the bytes of both streams, their lines, and the order in which these came. */
export class OutputLog {
  readonly #streams: Record<StreamName, Stream>;
  readonly #merged = new MergedLines();
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #kept: Missing[] = [];
  readonly #keptBlocks: number;
  /** Told of blocks that were dropped and are looked at again. */
  onMissing: ((missing: Missing) => void) | undefined;
  /** No line will grow any more. */
  isWhole = false;

  constructor({ keep = KEPT_BYTES } = {}) {
    const open = (): Stream => {
      const blocks = new ByteBlocks();
      return { blocks, index: new LineIndex(blocks), times: new LineTimes() };
    };
    this.#streams = { stdout: open(), stderr: open() };
    this.#keptBlocks = Math.max(2, Math.floor(keep / BLOCK_BYTES));
  }

  get lineCount(): number {
    return this.#merged.length;
  }

  /** Which lines may still grow: the last one of each stream, until its line break comes. */
  get openLines(): number[] {
    if (this.isWhole) return [];
    const open = STREAMS.filter(stream => this.#streams[stream].index.isOpen);
    return open.map(stream => this.#merged.lastOf(stream));
  }

  /** How much of a stream there is. */
  bytesOf(stream: StreamName): number {
    return this.#streams[stream].blocks.length;
  }

  append(stream: StreamName, bytes: Uint8Array, time?: string): void {
    const { blocks, index, times } = this.#streams[stream];
    if (time !== undefined) times.add(index.lineCount, Date.parse(time));
    const offset = blocks.length;
    const before = blocks.blockCount;
    blocks.append(bytes);
    this.#merged.add(stream, index.add(bytes, offset));
    for (let block = before; block < blocks.blockCount; block++) this.#keep({ stream, block });
  }

  /** Puts bytes back that were missing. */
  restore({ stream, block }: Missing, bytes: Uint8Array): void {
    this.#streams[stream].blocks.restore(block, bytes);
    this.#keep({ stream, block });
  }

  /** The last blocks that came stay, and those that were read again. */
  #keep(kept: Missing): void {
    this.#kept.push(kept);
    while (this.#kept.length > this.#keptBlocks) {
      const oldest = this.#kept.shift();
      if (!oldest) return;
      if (!this.#streams[oldest.stream].blocks.drop(oldest.block)) this.#kept.push(oldest);
    }
  }

  /** A line to be shown; undefined while its bytes are read again. */
  line(n: number): LogLine | undefined {
    const { stream, line } = this.#merged.at(n);
    const found = this.#textOf(stream, line);
    if (!found) return undefined;
    const style = this.#streams[stream].index.hasEscapes ? this.#styleBefore(stream, line) : {};
    return { stream, spans: readSpans(found.text, style).spans, hidden: found.hidden };
  }

  /** When a line began, in ms since 1970; undefined where that is not known. */
  timeOf(n: number): number | undefined {
    const { stream, line } = this.#merged.at(n);
    return this.#streams[stream].times.of(line);
  }

  /** The first line that began at a time or later; undefined where none has. */
  lineAt(time: number): number | undefined {
    const found = STREAMS.flatMap(stream => {
      const { times, index } = this.#streams[stream];
      const line = times.firstFrom(time);
      return line === undefined || line >= index.lineCount ? [] : this.#merged.find(stream, line);
    });
    return found.length === 0 ? undefined : Math.min(...found);
  }

  /** The colours that an earlier line has set. */
  #styleBefore(stream: StreamName, line: number): Style {
    const mark = this.#streams[stream].index.styleAtMark(line);
    let { style } = mark;
    for (let n = mark.line; n < line; n++) {
      const before = this.#textOf(stream, n);
      if (before) style = readSpans(before.text, style).style;
    }
    return style;
  }

  #textOf(stream: StreamName, line: number): { text: string; hidden: number } | undefined {
    const { blocks, index } = this.#streams[stream];
    const place = index.locate(line);
    if ('lost' in place) return this.#missLine(stream, place.lost);
    const { start, end } = place;
    const size = end - start;
    const decode = (shown: Uint8Array) => afterReturns(this.#decoder.decode(shown));
    if (size > SHOWN_BYTES) {
      const tail = blocks.read(end - SHOWN_BYTES, end);
      if (!tail) return this.#miss(stream, end - SHOWN_BYTES, end);
      if (tail.includes(13)) return { text: decode(tail), hidden: 0 };
    }
    const shown = Math.min(size, SHOWN_BYTES);
    const head = blocks.read(start, start + shown);
    if (!head) return this.#miss(stream, start, start + shown);
    return { text: decode(head), hidden: size - shown };
  }

  /** Asks for the first block that is missing of a stream's bytes. */
  #miss(stream: StreamName, from: number, to: number): undefined {
    const { blocks } = this.#streams[stream];
    const end = Math.min(to, blocks.length);
    for (let block = Math.floor(from / BLOCK_BYTES); block * BLOCK_BYTES < end; block++) {
      if (blocks.has(block)) continue;
      this.onMissing?.({ stream, block });
      return undefined;
    }
    return undefined;
  }

  #missLine(stream: StreamName, start: number): undefined {
    // It is looked through in pieces that grow, the last of which may reach behind it.
    return this.#miss(stream, start, start + 2 * LONG_LINE_BYTES);
  }

  /**
   * At most 64 successive lines of one stream from `from` on, as plain text; undefined where their bytes were dropped.
   */
  plainLines(from: number): string[] | undefined {
    const { stream, line, left } = this.#merged.at(from);
    const { blocks, index } = this.#streams[stream];
    const first = index.locate(line);
    if ('lost' in first) return this.#missLine(stream, first.lost);
    const { start } = first;
    if (first.end - start > WHOLE_BYTES) {
      const shown = this.#textOf(stream, line);
      return shown && [plainText(shown.text)];
    }
    const most = Math.min(left + 1, LINES_PER_MARK - (line % LINES_PER_MARK));
    let count = 1;
    while (count < most && !index.isLong(line) && !index.isLong(line + count)) count++;
    let end = index.offsetOfMark(line - (line % LINES_PER_MARK) + LINES_PER_MARK);
    if (count < FEW_LINES || end - start > LONG_LINE_BYTES) {
      const last = index.locate(line + count - 1);
      if ('lost' in last) return this.#missLine(stream, last.lost);
      ({ end } = last);
    }
    const bytes = blocks.read(start, end);
    if (!bytes) return this.#miss(stream, start, end);
    const lines = this.#decoder.decode(bytes).split('\n').slice(0, count);
    return lines.map(text => plainText(afterReturns(text)));
  }
}

/** What is left of a line that went back to its beginning: what it wrote last. */
function afterReturns(text: string): string {
  const whole = text.endsWith('\r') ? text.slice(0, -1) : text;
  return whole.slice(whole.lastIndexOf('\r') + 1);
}
