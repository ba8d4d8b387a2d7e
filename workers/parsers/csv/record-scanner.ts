import { MAX_PROBLEMS } from '../table/protocol.ts';
import { type Dialect, MAX_RECORD_BYTES } from './dialect.ts';

/** Said of a value such as "a"b; also where the delimiter is another. */
export const AFTER_QUOTES = 'there is text after the end of a quoted value';

/** A problem and its place in the file. */
export interface ScanProblem {
  /** The offset of the record's first byte. */
  offset: number;
  reason: string;
}

/** A well-formed record, without its line break and without a delimiter after its last value. */
export interface RecordSpan {
  start: number;
  end: number;
}

export interface Scan {
  /** The number of well-formed records, including the first one. */
  records: number;
  /** Whether DuckDB reads the file as it is: no comments, lines of spaces or trailing delimiters, one kind of line break. */
  isRegular: boolean;
  hasMixedLineBreaks: boolean;
  /** Whether a file of one column has blank lines, which are values or missing ones. */
  hasBlankRecords: boolean;
  /** Whether a quoted value has a line break. */
  hasLineBreaksInValues: boolean;
  /** Whether a problem is more than a malformed row that can be left out. */
  isFatal: boolean;
  problems: ScanProblem[];
  /** The number of problems, listed or not. */
  count: number;
  /** Offsets of the wanted records. */
  offsets: Map<number, number>;
}

const LF = 10;
const CR = 13;
const SPACE = 32;
const TAB = 9;
/** Bytes of a value in quotes in which its end is looked for one by one. */
const SHORT_BYTES = 32;

const FIELD_START = 0;
/** The value has only spaces so far. */
const SPACES = 1;
const PLAIN = 2;
const QUOTED = 3;
/** After a quote in a quoted value: its end, or the first of a doubled quote. */
const QUOTE_SEEN = 4;
/** After CR: a line break, perhaps with a following LF. */
const CR_SEEN = 5;
const COMMENT = 6;
const COMMENT_CR_SEEN = 7;
/** States up to this one: nothing but spaces of the value has come. */
const LAST_BLANK = SPACES;
/** States from this one on: the line is a comment. */
const FIRST_OF_COMMENT = COMMENT;

interface ScannerOptions {
  /** Indexes of records whose offsets are asked for. */
  wanted: Set<number> | undefined;
  /** Whether takeRecords() is called after each chunk. */
  keepsRecords: boolean;
}

/** Scans the chunks of a file: a state machine over bytes. */
export class RecordScanner {
  readonly #delimiter: number;
  readonly #quote: number;
  /** No byte if there are no comments. */
  readonly #comment: number;
  readonly #lineBreak: string;
  readonly #fields: number;
  readonly #wanted: Set<number>;
  /** Records at the beginning that are more than rows. */
  readonly #headRecords: number;
  readonly #keepsRecords: boolean;
  readonly #problems: ScanProblem[] = [];
  readonly #offsets = new Map<number, number>();
  /** 1 at each byte that neither ends a value nor quotes it. */
  readonly #ordinary = new Uint8Array(256).fill(1);
  /** 1 at each byte that in quotes is neither a quote nor a line break. */
  readonly #ordinaryInQuotes = new Uint8Array(256).fill(1);
  #count = 0;
  #state = FIELD_START;
  #field = 1;
  /** Only the first problem of a record is reported. */
  #isReported = false;
  #records = 0;
  /** Records, malformed ones too. */
  #seen = 0;
  #ended: RecordSpan[] = [];
  #isRegular = true;
  #hasBlankRecords = false;
  #hasMixedLineBreaks = false;
  #hasLineBreaksInValues = false;
  #isFatal = false;
  /** Offset of the next chunk. */
  #base = 0;
  /** Offset of the current record. */
  #start = 0;

  #chunk: Buffer = Buffer.alloc(0);
  /** Where the next line feed and the next carriage return of the chunk were found: looked for once in a line, not in each value. */
  #lf = -1;
  #cr = -1;
  /** Whether the part of the record that is in earlier chunks has a line break. */
  #carriesLineBreak = false;
  /** Whether that part has more than spaces and tabs. */
  #carriesText = false;
  /** Whether the line ended right after a delimiter. */
  #endsEmpty = false;

  constructor(dialect: Dialect, { wanted = new Set(), keepsRecords }: ScannerOptions) {
    this.#delimiter = dialect.delimiter.charCodeAt(0);
    this.#quote = dialect.quote.charCodeAt(0);
    this.#comment = dialect.comment?.charCodeAt(0) ?? -1;
    this.#lineBreak = dialect.lineBreak;
    for (const byte of [this.#delimiter, this.#quote, LF, CR]) this.#ordinary[byte] = 0;
    for (const byte of [this.#quote, LF, CR]) this.#ordinaryInQuotes[byte] = 0;
    this.#fields = dialect.first.length;
    this.#wanted = wanted;
    this.#headRecords = dialect.hasUnits ? 2 : 1;
    this.#keepsRecords = keepsRecords;
  }

  /** The offset of the record that has not ended yet. */
  get start(): number {
    return this.#start;
  }

  takeRecords(): RecordSpan[] {
    const ended = this.#ended;
    this.#ended = [];
    return ended;
  }

  result(): Scan {
    return {
      records: this.#records,
      isRegular: this.#isRegular,
      hasMixedLineBreaks: this.#hasMixedLineBreaks,
      hasBlankRecords: this.#hasBlankRecords,
      hasLineBreaksInValues: this.#hasLineBreaksInValues,
      isFatal: this.#isFatal,
      problems: this.#problems,
      count: this.#count,
      offsets: this.#offsets,
    };
  }

  /** A reason that takes time to write is written only if it is listed. */
  report(reason: string | (() => string), { isFatal = false } = {}): void {
    if (isFatal || this.#seen < this.#headRecords) this.#isFatal = true;
    if (this.#isReported) return;
    this.#isReported = true;
    this.#count++;
    if (this.#problems.length < MAX_PROBLEMS)
      this.#problems.push({
        offset: this.#start,
        reason: typeof reason === 'string' ? reason : reason(),
      });
  }

  /** Returns false if the scan should stop. One loop: calls for its parts cost a tenth of the speed. */
  feed(chunk: Buffer): boolean {
    const delimiter = this.#delimiter;
    const quote = this.#quote;
    const ordinary = this.#ordinary;
    const ordinaryInQuotes = this.#ordinaryInQuotes;
    const last = chunk.length - 1;
    this.#chunk = chunk;
    this.#lf = -1;
    this.#cr = -1;
    const comment = this.#comment;
    let state = this.#state;
    let field = this.#field;
    for (let i = 0; i < chunk.length; i++) {
      if (state === QUOTED) {
        // Most values are short, and then this takes less time than a call.
        const near = Math.min(i + SHORT_BYTES, last);
        while (i < near && ordinaryInQuotes[chunk[i] as number] === 1) i++;
        if (chunk[i] !== quote) {
          const next = chunk.indexOf(quote, i);
          if (!this.#hasLineBreaksInValues) this.#findLineBreak(i, next < 0 ? chunk.length : next);
          if (next < 0) break;
          i = next;
        }
        state = QUOTE_SEEN;
        continue;
      }
      const byte = chunk[i] as number;
      if (state >= FIRST_OF_COMMENT) {
        if (state === COMMENT_CR_SEEN) {
          state = FIELD_START;
          if (byte === LF) {
            this.#start++;
            continue;
          }
        } else {
          if (byte === LF || byte === CR) {
            this.#start = this.#base + i + 1;
            state = byte === LF ? FIELD_START : COMMENT_CR_SEEN;
          }
          continue;
        }
      }
      if (state === CR_SEEN) {
        this.#field = field;
        this.#endRecord(this.#base + i - 1, byte === LF ? '\r\n' : '\r');
        field = 1;
        state = FIELD_START;
        if (byte === LF) continue;
      }
      if (byte === comment && this.#start === this.#base + i) {
        this.#isRegular = false;
        state = COMMENT;
      } else if (byte === delimiter) {
        field++;
        state = FIELD_START;
      } else if (byte === LF) {
        this.#endsEmpty = state === FIELD_START;
        this.#field = field;
        this.#endRecord(this.#base + i, '\n');
        field = 1;
        state = FIELD_START;
      } else if (byte === CR) {
        this.#endsEmpty = state === FIELD_START;
        state = CR_SEEN;
      } else if (byte === quote) {
        if (state === FIELD_START || state === QUOTE_SEEN) state = QUOTED;
        else if (state === SPACES) this.report('there is a space before a quote');
      } else if (state === QUOTE_SEEN) {
        this.report(AFTER_QUOTES);
        state = PLAIN;
      } else {
        if (byte === SPACE && state <= LAST_BLANK) {
          state = SPACES;
          continue;
        }
        state = PLAIN;
        // Skips the rest of the value: half of the bytes pass here, four times as fast.
        while (i < last && ordinary[chunk[i + 1] as number] === 1) i++;
      }
    }
    const from = this.#start - this.#base;
    this.#carriesLineBreak =
      (from < 0 && this.#carriesLineBreak) || hasLineBreak(chunk, from, chunk.length);
    this.#carriesText = (from < 0 && this.#carriesText) || hasText(chunk, from, chunk.length);
    this.#state = state;
    this.#field = field;
    this.#base += chunk.length;
    // A comment may be of any length.
    if (state === COMMENT) this.#start = this.#base;
    if (this.#base - this.#start <= MAX_RECORD_BYTES) return true;
    this.report(TOO_LONG, { isFatal: true });
    return false;
  }

  end(): void {
    if (this.#state === QUOTED) this.report('a quote is never closed', { isFatal: true });
    else if (this.#state === CR_SEEN) this.#endRecord(this.#base - 1, '\r');
    else if (this.#state < FIRST_OF_COMMENT && this.#base > this.#start) {
      this.#endsEmpty = this.#state === FIELD_START;
      this.#endRecord(this.#base, this.#lineBreak);
    }
  }

  /** `end` is the offset of the line break. A blank line is a missing value in a table of one column, below its units, else ignored. */
  #endRecord(end: number, lineBreak: string): void {
    const isBeforeUnits = this.#records === 1 && this.#headRecords === 2;
    const isSpaces = end > this.#start && this.#field < this.#fields && this.#isSpaces(end);
    if (isSpaces) this.#isRegular = false;
    const isRecord = (end > this.#start && !isSpaces) || (this.#fields === 1 && !isBeforeUnits);
    const hasTrailingDelimiter = this.#field === this.#fields + 1 && this.#endsEmpty;
    if (isRecord) {
      if (end - this.#start > MAX_RECORD_BYTES) this.report(TOO_LONG, { isFatal: true });
      if (this.#field !== this.#fields && !hasTrailingDelimiter)
        this.report(
          () => `expected ${count(this.#fields)}, found ${this.#field.toLocaleString('en')}`,
        );
    }
    if (lineBreak !== this.#lineBreak) this.#checkLineBreak(lineBreak);
    if (this.#isReported && !this.#isFatal && this.#hasLines(end)) this.#isFatal = true;
    if (isRecord && !this.#isReported) {
      if (end === this.#start) this.#hasBlankRecords = true;
      if (hasTrailingDelimiter) this.#isRegular = false;
      if (this.#keepsRecords)
        this.#ended.push({ start: this.#start, end: hasTrailingDelimiter ? end - 1 : end });
      if (this.#wanted.has(this.#records)) this.#offsets.set(this.#records, this.#start);
      this.#records++;
    }
    if (isRecord || this.#isReported) this.#seen++;
    this.#start = end + lineBreak.length;
    this.#field = 1;
    this.#isReported = false;
  }

  /** Looks for a line break in this part of a quoted value. */
  #findLineBreak(from: number, to: number): void {
    if (this.#lf < from) this.#lf = positionOf(LF, this.#chunk, from);
    if (this.#cr < from) this.#cr = positionOf(CR, this.#chunk, from);
    this.#hasLineBreaksInValues = this.#lf < to || this.#cr < to;
  }

  /** Whether a line of too few values has nothing but spaces and tabs, none of which delimits values. */
  #isSpaces(end: number): boolean {
    if (this.#field > 1 || this.#delimiter === SPACE || this.#delimiter === TAB) return false;
    const from = this.#start - this.#base;
    return !(from < 0 && this.#carriesText) && !hasText(this.#chunk, from, end - this.#base);
  }

  /** Whether the record spans several lines. In a malformed one an unclosed quote may have swallowed other records. */
  #hasLines(end: number): boolean {
    const from = this.#start - this.#base;
    return (
      (from < 0 && this.#carriesLineBreak) || hasLineBreak(this.#chunk, from, end - this.#base)
    );
  }

  /** LF and CRLF may be mixed; a CR among them is more likely part of a value. */
  #checkLineBreak(lineBreak: string): void {
    if (lineBreak !== '\r' && this.#lineBreak !== '\r') {
      this.#isRegular = false;
      this.#hasMixedLineBreaks = true;
    } else
      this.report(
        () =>
          `the line ends in ${name(lineBreak)} where the first one ends in ${name(this.#lineBreak)}`,
      );
  }
}

/** The position is infinite if the byte is not there. */
function positionOf(byte: number, chunk: Buffer, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at < 0 ? Number.POSITIVE_INFINITY : at;
}

function hasLineBreak(chunk: Buffer, from: number, to: number): boolean {
  for (let i = Math.max(0, from); i < to; i++) if (chunk[i] === LF || chunk[i] === CR) return true;
  return false;
}

/** Whether a part of a chunk has more than spaces, tabs and line breaks. */
function hasText(chunk: Buffer, from: number, to: number): boolean {
  for (let i = Math.max(0, from); i < to; i++) if (!isSpaceOrBreak(chunk[i] as number)) return true;
  return false;
}

const isSpaceOrBreak = (byte: number) =>
  byte === SPACE || byte === TAB || byte === LF || byte === CR;

const TOO_LONG = `the row is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`;
const count = (n: number) => (n === 1 ? '1 value' : `${n.toLocaleString('en')} values`);
const name = (lineBreak: string) => lineBreak.replace('\r', 'CR').replace('\n', 'LF');
