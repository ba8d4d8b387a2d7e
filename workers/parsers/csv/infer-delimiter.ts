import { splitRecord, walkRecord } from './dialect.ts';

const DELIMITERS = [',', ';', '\t', '|'];
/** Bytes and lines that are looked at for values that are alike. */
const BYTES = 100_000;
const LINES = 100;
const SPACED_NUMBER = /^[-+]?(\d+[.,]?\d*|[.,]\d+)([eEdD][-+]?\d+)?$/;
const TAB_BESIDE_ANOTHER = /[,;|]\t|\t[,;|]/;
/** A text such as Doe, Jane. */
const TEXT_WITH_COMMAS = /^ *\p{L}(?:[^,]|, )*$/u;

/** Whether it is a number with a decimal comma. */
export const isCommaNumber = (text: string): boolean =>
  /^ *[-+]?(\d+,\d*|,\d+)([eE][-+]?\d+)? *$/.test(text);

/**
 * A tab where it splits all lines; else the most frequent usual delimiter of the first record, unless all its commas are
 * those of numbers and texts; a space if all rows are numbers between spaces.
 */
export function inferDelimiter(
  head: Buffer,
  { quote, decimal }: { quote: string; decimal: '.' | ',' },
): string {
  const usual = DELIMITERS.filter(delimiter => delimiter !== decimal);
  const counts = new Map(usual.map(delimiter => [delimiter.charCodeAt(0), 0]));
  walkRecord(head, quote, byte => {
    const n = counts.get(byte);
    if (n === undefined) return false;
    counts.set(byte, n + 1);
    return true;
  });
  const most = Math.max(...counts.values());
  if (most === 0 && isSpaced(head)) return ' ';
  const mayBe = (delimiter: string) =>
    counts.get(delimiter.charCodeAt(0)) !== 0 && !(delimiter === '\t' && hasAligningTabs(head));
  const apart = (delimiter: string) => takeApart(head, { delimiter, quote });
  if (mayBe('\t') && apart('\t').length > 1) return '\t';
  const found = usual.find(delimiter => counts.get(delimiter.charCodeAt(0)) === most) ?? ',';
  if (found !== ',') return found;
  const keepsCommas = (delimiter: string) =>
    delimiter !== ',' && mayBe(delimiter) && areCommasInValues(apart(delimiter));
  return usual.find(keepsCommas) ?? found;
}

/** The values of the first lines; none if some lines have more than others, or if the delimiter only ends them. */
function takeApart(head: Buffer, dialect: { delimiter: string; quote: string }): string[][] {
  const rows = linesOf(head).map(line => splitRecord(Buffer.from(line), dialect));
  const isEven = rows.every(row => row.length === rows[0]?.length);
  return isEven && rows.some(row => row.filter(value => value !== '').length > 1) ? rows : [];
}

/** Whether tabs only align what another delimiter takes apart. */
const hasAligningTabs = (head: Buffer): boolean =>
  linesOf(head).some(line => TAB_BESIDE_ANOTHER.test(line));

/** Whether all commas below the names are parts of numbers or texts: 1,5;2,5 and Doe, Jane;2,5. */
function areCommasInValues([first = [], ...others]: string[][]): boolean {
  const rows = others.length > 0 ? others : [first];
  return (
    first.length > 1 &&
    rows
      .flat()
      .filter(value => value.includes(','))
      .every(value => isCommaNumber(value) || TEXT_WITH_COMMAS.test(value))
  );
}

/** Whether spaces split all lines into equally many values, numbers only after the first line. */
function isSpaced(head: Buffer): boolean {
  const lines = linesOf(head).map(line => line.trim().split(/ +/));
  const [first = [], ...others] = lines;
  return (
    first.length > 1 &&
    others.length > 0 &&
    others.every(
      line => line.length === first.length && line.every(value => SPACED_NUMBER.test(value)),
    )
  );
}

/** The first non-blank lines, without one that is cut. */
function linesOf(head: Buffer): string[] {
  const lines = head.toString('utf8', 0, BYTES).split(/\r\n|\n|\r/);
  const whole = head.length > BYTES || lines.length > LINES ? lines.slice(0, -1) : lines;
  return whole.slice(0, LINES).filter(line => line !== '');
}
