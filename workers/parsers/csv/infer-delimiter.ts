import { walkRecord } from './dialect.ts';

const DELIMITERS = [',', ';', '\t', '|'];
/** Lines that are looked at for columns of numbers between spaces. */
const SPACED_LINES = 100;
const SPACED_NUMBER = /^[-+]?(\d+[.,]?\d*|[.,]\d+)([eEdD][-+]?\d+)?$/;

/** The most frequent of the usual delimiters in the first record; a space where all rows are numbers between spaces. */
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
  return usual.find(delimiter => counts.get(delimiter.charCodeAt(0)) === most) ?? ',';
}

/** Whether all lines have as many values between spaces, and all lines but the first have numbers only. */
function isSpaced(head: Buffer): boolean {
  const lines = head
    .toString('utf8', 0, 100_000)
    .split(/\r\n|\n|\r/)
    .slice(0, SPACED_LINES + 1)
    // The last one may be cut.
    .slice(0, -1)
    .filter(line => line !== '')
    .map(line => line.trim().split(/ +/));
  const [first = [], ...others] = lines;
  return (
    first.length > 1 &&
    others.length > 0 &&
    others.every(
      line => line.length === first.length && line.every(value => SPACED_NUMBER.test(value)),
    )
  );
}
