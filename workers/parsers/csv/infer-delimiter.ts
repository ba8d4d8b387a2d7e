import { splitRecord, walkRecord } from './dialect.ts';

const DELIMITERS = [',', ';', '\t', '|'];
/** Bytes and records that are looked at for values that are alike. */
const BYTES = 100_000;
const RECORDS = 100;
const SPACED_NUMBER = /^[-+]?((\d+([.,]\d*)?|[.,]\d+)([eEdD][-+]?\d+)?|nan|inf(inity)?)$/i;
const TAB_BESIDE_ANOTHER = /[,;|]\t|\t[,;|]/;
/** A text such as Doe, Jane. */
const TEXT_WITH_COMMAS = /^ *\p{L}(?:[^,]|, )*$/u;

/** Whether it is a number with a decimal comma. */
export const isCommaNumber = (text: string): boolean =>
  /^ *[-+]?(\d+,\d*|,\d+)([eE][-+]?\d+)? *$/.test(text);

export interface Format {
  quote: string;
  comment: string | undefined;
  /** The number of rows that may be malformed. */
  tolerance: number;
}

/**
 * A tab where it splits all rows; else the most frequent usual delimiter of the first record, unless all its commas are
 * those of numbers and texts; a space if all rows are numbers between spaces.
 */
export function inferDelimiter(
  head: Buffer,
  { decimal, ...format }: Format & { decimal: '.' | ',' },
): string {
  const usual = DELIMITERS.filter(delimiter => delimiter !== decimal);
  const counts = new Map(usual.map(delimiter => [delimiter.charCodeAt(0), 0]));
  walkRecord(head, format.quote, byte => {
    const n = counts.get(byte);
    if (n === undefined) return false;
    counts.set(byte, n + 1);
    return true;
  });
  const countOf = (delimiter: string) => counts.get(delimiter.charCodeAt(0));
  const most = Math.max(...counts.values());
  if (most === 0 && isSpaced(head, format)) return ' ';
  const mayBe = (delimiter: string) =>
    countOf(delimiter) !== 0 && !(delimiter === '\t' && areTabsAligning(head, format));
  const apart = (delimiter: string) => takeApart(head, delimiter, format);
  if (mayBe('\t') && apart('\t').length > 1) return '\t';
  const found = usual.find(delimiter => countOf(delimiter) === most) ?? ',';
  if (found !== ',') return found;
  const keepsCommas = (delimiter: string) => {
    if (delimiter === ',' || !mayBe(delimiter)) return false;
    // A delimiter that is rarer than commas which take the rows apart is more likely part of a text itself.
    const inTexts = countOf(delimiter) === most || apart(',').length === 0;
    return areCommasInValues(apart(delimiter), { inTexts });
  };
  return usual.find(keepsCommas) ?? found;
}

/** The values of the first records; none if some have more than others, or if the delimiter only ends them. */
function takeApart(head: Buffer, delimiter: string, format: Format): string[][] {
  const { quote, tolerance } = format;
  const rows = recordsOf(head, delimiter, format).map(record =>
    splitRecord(record, { delimiter, quote }),
  );
  const length = rows[0]?.length ?? 0;
  // A delimiter may end a row.
  for (const row of rows) if (row.length === length + 1 && row.at(-1) === '') row.pop();
  const even = rows.filter(row => row.length === length);
  const odd = rows.length - even.length;
  const isEven = odd <= tolerance && odd < even.length;
  return isEven && even.some(row => row.filter(value => value !== '').length > 1) ? even : [];
}

/** Whether tabs only align what another delimiter takes apart. */
const areTabsAligning = (head: Buffer, format: Format): boolean =>
  recordsOf(head, '\t', format)
    .filter(record => record.includes('\t'))
    .every(record => TAB_BESIDE_ANOTHER.test(record.toString()));

/** Whether all commas below the names are parts of numbers or texts: 1,5;2,5 and Doe, Jane;2,5. */
function areCommasInValues(
  [first = [], ...others]: string[][],
  { inTexts }: { inTexts: boolean },
): boolean {
  const rows = others.length > 0 ? others : [first];
  return (
    first.length > 1 &&
    rows
      .flat()
      .filter(value => value.includes(','))
      .every(value => isCommaNumber(value) || (inTexts && TEXT_WITH_COMMAS.test(value)))
  );
}

const atSpaces = (record: Buffer) => record.toString().trim().split(/ +/);

/** The length of a lone # or % before as many names as the next row has values, as numpy.savetxt() writes them; else 0. */
export function lengthOfSign(head: Buffer, format: Format): number {
  const sign = /^ *[#%] +/.exec(head.toString('latin1', 0, 100))?.[0] ?? '';
  const [names = [], values = []] = recordsOf(head, ' ', format).map(atSpaces);
  return names.length === values.length + 1 ? sign.length : 0;
}

/** Whether spaces split all rows into equally many values, numbers only after the first row. */
function isSpaced(head: Buffer, format: Format): boolean {
  const records = recordsOf(head.subarray(lengthOfSign(head, format)), ' ', format);
  const [first = [], ...others] = records.map(atSpaces);
  return (
    first.length > 1 &&
    others.length > 0 &&
    others.every(
      row => row.length === first.length && row.every(value => SPACED_NUMBER.test(value)),
    )
  );
}

const isBlank = (record: Buffer) => /^[ \t]*$/.test(record.toString('latin1'));

/** The first records, without blank lines, comments, and one that is cut. */
function recordsOf(head: Buffer, delimiter: string, { quote, comment }: Format): Buffer[] {
  const bytes = head.subarray(0, BYTES);
  const code = delimiter.charCodeAt(0);
  const records: Buffer[] = [];
  for (let at = 0; at < bytes.length && records.length < RECORDS; ) {
    const rest = bytes.subarray(at);
    const isComment = rest[0] === comment?.charCodeAt(0);
    // A comment has no values, so that its quotes are none.
    const { end } = walkRecord(rest, quote, byte => byte === code && !isComment);
    const isCut = end === rest.length && head.length > BYTES;
    const record = rest.subarray(0, end);
    if (!isComment && !isCut && !isBlank(record)) records.push(record);
    at += end + 1;
  }
  return records;
}
