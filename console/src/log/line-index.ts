import { readStyle, type Style } from './ansi.ts';
import { BLOCK_BYTES, type ByteBlocks } from './byte-blocks.ts';
import { GrowingNumbers } from './growing-numbers.ts';

/** The offset of every such line is kept; between two of them line breaks are looked for. */
export const LINES_PER_MARK = 64;
/** Where longer lines begin and end is kept, so that none has to be read to find the lines behind it. */
export const LONG_LINE_BYTES = BLOCK_BYTES;
const LINE_FEED = 10;
const ESCAPE = 27;

/** Where a line begins, and where its line break is, or where the stream ends so far. */
interface LineSpan {
  start: number;
  end: number;
}

/** Where the lines of one stream begin, and which colours are set there: 8 bytes for 64 lines. */
export class LineIndex {
  readonly #blocks: ByteBlocks;
  readonly #marks = new GrowingNumbers();
  /** What escape sequences have set at a mark, where that is anything. */
  readonly #styles = new Map<number, Style>();
  #style: Style = {};
  /** The tail of a chunk in which an escape sequence may have begun. */
  #cut: Uint8Array | undefined;
  readonly #long = new Map<number, LineSpan>();
  #lines = 0;
  #lastStart = 0;
  #isAtStart = true;
  #hasEscapes = false;

  constructor(blocks: ByteBlocks) {
    this.#blocks = blocks;
  }

  /** Lines that have begun. */
  get lineCount(): number {
    return this.#lines;
  }

  /** Whether its last line has no line break yet. */
  get isOpen(): boolean {
    return !this.#isAtStart;
  }

  get hasEscapes(): boolean {
    return this.#hasEscapes;
  }

  /** Takes up bytes that were just appended at `offset`; how many lines begin in them. */
  add(bytes: Uint8Array, offset: number): number {
    if (bytes.length === 0) return 0;
    const before = this.#lines;
    let styled = 0;
    const begin = (at: number) => {
      if (this.#lines > 0) this.#keepLong({ start: this.#lastStart, end: offset + at - 1 });
      this.#lastStart = offset + at;
      if (this.#lines % LINES_PER_MARK === 0) {
        this.#followStyle(bytes.subarray(styled, at));
        styled = at;
        if (Object.keys(this.#style).length > 0) this.#styles.set(this.#marks.length, this.#style);
        this.#marks.push(offset + at);
      }
      this.#lines++;
    };
    if (this.#isAtStart) begin(0);
    let at = bytes.indexOf(LINE_FEED);
    while (at !== -1 && at + 1 < bytes.length) {
      begin(at + 1);
      at = bytes.indexOf(LINE_FEED, at + 1);
    }
    this.#isAtStart = at !== -1;
    this.#followStyle(bytes.subarray(styled));
    return this.#lines - before;
  }

  /** Or where a line begins that stands before it, or itself, whose bytes were dropped: at most LONG_LINE_BYTES of them. */
  locate(line: number): LineSpan | { lost: number } {
    const known = this.#spanOfLong(line);
    if (known) return known;
    let start = this.#marks.at(Math.floor(line / LINES_PER_MARK));
    for (let n = line - (line % LINES_PER_MARK); ; n++) {
      const end = this.#spanOfLong(n)?.end ?? this.#findBreak(start);
      if (end === undefined) return { lost: start };
      if (n === line) return { start, end };
      start = end + 1;
    }
  }

  isLong(line: number): boolean {
    return this.#spanOfLong(line) !== undefined;
  }

  #keepLong(span: LineSpan): void {
    if (span.end - span.start > LONG_LINE_BYTES) this.#long.set(this.#lines - 1, span);
  }

  #spanOfLong(line: number): LineSpan | undefined {
    if (line !== this.#lines - 1) return this.#long.get(line);
    const end = this.#blocks.length - (this.#isAtStart ? 1 : 0);
    return end - this.#lastStart > LONG_LINE_BYTES ? { start: this.#lastStart, end } : undefined;
  }

  /** What is set where the mark of the line stands, and the first line after it. */
  styleAtMark(line: number): { style: Style; line: number } {
    const mark = Math.floor(line / LINES_PER_MARK);
    return { style: this.#styles.get(mark) ?? {}, line: mark * LINES_PER_MARK };
  }

  /** The offset at which so many lines from a mark on begin; the end where there are fewer. */
  offsetOfMark(line: number): number {
    const mark = Math.ceil(line / LINES_PER_MARK);
    return mark < this.#marks.length ? this.#marks.at(mark) : this.#blocks.length;
  }

  #findBreak(from: number): number | undefined {
    for (let at = from, size = 512; at < this.#blocks.length; size = Math.min(size * 4, 1 << 18)) {
      const piece = this.#blocks.read(at, at + size);
      if (!piece) return undefined;
      const found = piece.indexOf(LINE_FEED);
      if (found !== -1) return at + found;
      at += piece.length;
    }
    return this.#blocks.length;
  }

  #followStyle(bytes: Uint8Array): void {
    let piece = bytes;
    if (this.#cut) {
      piece = new Uint8Array(this.#cut.length + bytes.length);
      piece.set(this.#cut);
      piece.set(bytes, this.#cut.length);
      this.#cut = undefined;
    }
    const first = piece.indexOf(ESCAPE);
    if (first === -1) return;
    this.#hasEscapes = true;
    const { style, rest } = readStyle(piece.subarray(first), this.#style);
    this.#style = style;
    this.#cut = rest?.slice();
  }
}
