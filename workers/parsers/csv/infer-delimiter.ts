import { walkRecord } from './dialect.ts';

const DELIMITERS = [',', ';', '\t', '|'];
/** Lines that are looked at for columns of numbers. */
const LINES = 100;
const SPACED_NUMBER = /^[-+]?(\d+[.,]?\d*|[.,]\d+)([eEdD][-+]?\d+)?$/;

/** Whether it is a number with a decimal comma. */
export const isCommaNumber = (text: string): boolean =>
  /^ *[-+]?(\d+,\d*|,\d+)([eE][-+]?\d+)? *$/.test(text);

/**
 * The most frequent usual delimiter of the first record, unless all its commas are decimal; a space if all rows are
 * numbers between spaces.
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
  const found = usual.find(delimiter => counts.get(delimiter.charCodeAt(0)) === most) ?? ',';
  if (found !== ',') return found;
  const hasDecimalCommas = (delimiter: string) =>
    counts.get(delimiter.charCodeAt(0)) !== 0 && isApartByOther(head, delimiter);
  return usual.find(delimiter => delimiter !== ',' && hasDecimalCommas(delimiter)) ?? found;
}

/**
 * Whether another delimiter splits all lines into equally many values, of which those with a comma are numbers:
 * 1,5;2,5.
 */
function isApartByOther(head: Buffer, delimiter: string): boolean {
  const [first = [], ...others] = linesOf(head).map(line => line.split(delimiter));
  const rows = others.length > 0 ? others : [first];
  const withComma = rows.flat().filter(value => value.includes(','));
  return (
    rows.every(row => row.length === first.length) &&
    withComma.length > 0 &&
    withComma.every(isCommaNumber)
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

/** The first non-blank lines, without the last one, which may be cut. */
const linesOf = (head: Buffer): string[] =>
  head
    .toString('utf8', 0, 100_000)
    .split(/\r\n|\n|\r/)
    .slice(0, LINES + 1)
    .slice(0, -1)
    .filter(line => line !== '');
