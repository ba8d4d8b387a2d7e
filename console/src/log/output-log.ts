import { plainText, readSpans, type Span, type Style } from './ansi.ts';
import { BLOCK_BYTES, ByteBlocks } from './byte-blocks.ts';
import { LINES_PER_MARK, LineIndex } from './line-index.ts';
import { LineTimes } from './line-times.ts';
import { MergedLines, STREAMS, type StreamName } from './merged-lines.ts';

/** Of a longer line the beginning is shown, and of one that overwrites itself, as progress bars do, the end. */
const SHOWN_BYTES = 16 << 10;
/** Bytes that are kept of both streams; older ones are read again where they are looked at. */
const KEPT_BYTES = 64 << 20;
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
  /** Its last line will not grow any more. */
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
    if (!place) return this.#miss(stream, line);
    const { start, end } = place;
    const size = end - start;
    const tail = size > SHOWN_BYTES ? blocks.read(end - SHOWN_BYTES, end) : undefined;
    const overwrites = tail?.includes(13) ?? false;
    const shown =
      tail && overwrites ? tail : blocks.read(start, Math.min(end, start + SHOWN_BYTES));
    if (!shown) return this.#miss(stream, line);
    const text = afterReturns(this.#decoder.decode(shown));
    return { text, hidden: overwrites ? 0 : size - Math.min(size, SHOWN_BYTES) };
  }

  /** Asks for the first block that is missing from the line's mark on. */
  #miss(stream: StreamName, line: number): undefined {
    const { blocks, index } = this.#streams[stream];
    const from = index.offsetOfMark(line - (line % LINES_PER_MARK));
    for (let block = Math.floor(from / BLOCK_BYTES); block < blocks.blockCount; block++) {
      if (blocks.has(block)) continue;
      this.onMissing?.({ stream, block });
      return undefined;
    }
    return undefined;
  }

  /**
   * The lines from `from` on that stand one after the other in one stream, at most 64 of them, as plain text; undefined
   * where their bytes were dropped.
   */
  plainLines(from: number): string[] | undefined {
    const { stream, line, left } = this.#merged.at(from);
    const { blocks, index } = this.#streams[stream];
    const count = Math.min(left + 1, LINES_PER_MARK - (line % LINES_PER_MARK));
    const first = index.locate(line);
    const last = count < FEW_LINES ? index.locate(line + count - 1)?.end : undefined;
    const end = last ?? index.offsetOfMark(line - (line % LINES_PER_MARK) + LINES_PER_MARK);
    const bytes = first && blocks.read(first.start, end);
    if (!bytes) return this.#miss(stream, line);
    const lines = this.#decoder.decode(bytes).split('\n').slice(0, count);
    return lines.map(text => plainText(afterReturns(text)));
  }
}

/** What is left of a line that went back to its beginning: what it wrote last. */
function afterReturns(text: string): string {
  const whole = text.endsWith('\r') ? text.slice(0, -1) : text;
  return whole.slice(whole.lastIndexOf('\r') + 1);
}
