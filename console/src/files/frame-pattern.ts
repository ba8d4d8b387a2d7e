/** Frames of the longest video that the service makes. */
const MAX = 100_000;
const NUMBER = /%(0?)(\d{0,2})d/;

/** Which frames a pattern takes: numbers, or with `*` positions from 0. */
export interface FrameRange {
  first?: number;
  last?: number;
  step?: number;
}

/** What the service takes for a pattern in a name without a folder: one number such as %04d, or one or more `*`. */
export const isPattern = (pattern: string): boolean =>
  !pattern.includes('/') &&
  (pattern.match(/%0?\d{0,2}d/g) ?? []).length === (pattern.includes('*') ? 0 : 1);

/**
 * The pattern of the numbered files around a name; undefined where it stands alone. Where a name has several numbers, the one
 * with the longest row counts.
 */
export function findPattern(name: string, names: string[]): string | undefined {
  // A pattern would take these for its own signs.
  if (/[%*]/.test(name)) return undefined;
  const present = new Set(names);
  const rows = [...name.matchAll(/\d+/g)].map(({ index, 0: digits }) => {
    const before = name.slice(0, index);
    const after = name.slice(index + digits.length);
    const write = (number: number, width: number) =>
      `${before}${String(number).padStart(width, '0')}${after}`;
    const number = Number(digits);
    // A larger number and the next one may have the same digits: the search would never end.
    if (number >= Number.MAX_SAFE_INTEGER / 2) return { pattern: name, length: 1 };
    const isPadded = digits.startsWith('0') && digits.length > 1;
    const widths = isPadded ? [digits.length] : [0, digits.length];
    const lengths = widths.map(width => {
      let length = 1;
      for (let n = number - 1; n >= 0 && present.has(write(n, width)); n--) length++;
      for (let n = number + 1; present.has(write(n, width)); n++) length++;
      return { width, length };
    });
    const [longest = { width: 0, length: 1 }] = lengths.sort((a, b) => b.length - a.length);
    const sign = longest.width > 1 ? `%0${longest.width}d` : '%d';
    return { pattern: `${before}${sign}${after}`, length: longest.length };
  });
  const [longest] = rows.sort((a, b) => b.length - a.length);
  return longest && longest.length > 1 ? longest.pattern : undefined;
}

/** The frames of a pattern in a folder, in order, as the service will find them on the host. */
export function expandPattern(
  pattern: string,
  names: string[],
  { first, last, step = 1 }: FrameRange = {},
): string[] {
  if (!isPattern(pattern)) return [];
  const numbers = findNumbers(pattern, names);
  if (!numbers) return expandStar(pattern, names, { first, last, step });
  const { there, write } = numbers;
  const frames: string[] = [];
  for (let n = first ?? lowest(there); frames.length < MAX; n += step) {
    if (last === undefined ? !there.has(n) : n > last) break;
    frames.push(write(n));
  }
  return frames;
}

/** Where the numbers of a pattern end though more follow: the name that is missing, and how many they are. */
export function findGap(
  pattern: string,
  names: string[],
  { first, last, step = 1 }: FrameRange = {},
): { name: string; after: number } | undefined {
  const numbers = isPattern(pattern) ? findNumbers(pattern, names) : undefined;
  if (!numbers || last !== undefined) return undefined;
  const { there, write } = numbers;
  const from = first ?? lowest(there);
  let gap = from;
  while (there.has(gap)) gap += step;
  const after = [...there].filter(n => n > gap && (n - from) % step === 0).length;
  return gap > from && after > 0 ? { name: write(gap), after } : undefined;
}

const lowest = (numbers: Set<number>): number => {
  let least = Number.POSITIVE_INFINITY;
  for (const number of numbers) least = Math.min(least, number);
  return least;
};

/** The numbers that are there, and how a name is written with one; undefined for a pattern with `*`. */
function findNumbers(pattern: string, names: string[]) {
  const split = NUMBER.exec(pattern);
  if (!split) return undefined;
  const [whole, zero, width = ''] = split;
  const [before = '', after = ''] = pattern.split(whole);
  const write = (n: number) =>
    `${before}${String(n).padStart(Number(width), zero ? '0' : ' ')}${after}`;
  const there = new Set<number>();
  for (const name of names) {
    if (!name.startsWith(before) || !name.endsWith(after)) continue;
    const number = Number(name.slice(before.length, name.length - after.length).trim());
    if (Number.isSafeInteger(number) && number >= 0 && write(number) === name) there.add(number);
  }
  return { there, write };
}

function expandStar(
  pattern: string,
  names: string[],
  { first = 0, last, step = 1 }: FrameRange,
): string[] {
  const parts = pattern.split('*').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const match = new RegExp(`^${parts.join('.*')}$`, 's');
  // As in a shell: only a dot matches a dot at the beginning.
  const isShown = (name: string) => pattern.startsWith('.') || !name.startsWith('.');
  return names
    .filter(name => isShown(name) && match.test(name))
    .sort(compareNaturally)
    .slice(first, last === undefined ? MAX : last + 1)
    .filter((_, position) => position % step === 0);
}

/** Compares runs of digits by their value, all else by its characters. */
function compareNaturally(a: string, b: string): number {
  const split = (text: string): string[] => text.match(/\d+|\D+/g) ?? [];
  const [left, right] = [split(a), split(b)];
  for (const [at, part] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    if (part === other) continue;
    const isNumber = /^\d/.test(part) && /^\d/.test(other);
    const difference = isNumber ? Number(part) - Number(other) : 0;
    if (difference !== 0) return difference;
    return part < other ? -1 : 1;
  }
  return left.length - right.length;
}
