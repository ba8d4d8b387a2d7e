import { WindlassError } from '../../shared/errors/errors.ts';
import { MAX_FRAMES } from '../../shared/jobs/payloads/video.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { STREAM_MAGIC } from './frame-stream.ts';

export interface Pattern {
  /** An absolute path with one `%d` or `%05d`, or with `*`. */
  pattern: string;
  /** The first number, or the first position from 0 of what `*` matches. */
  first?: number;
  last?: number;
  step?: number;
}

const NUMBER = /%(0?)(\d*)d/;

/**
 * A script for /bin/sh that prints the paths which may match, each with a NUL after it, and an empty one at the end. Only
 * `*` is special to it: everything else is quoted.
 */
export function patternScript({ pattern }: Pattern): string {
  const parts = NUMBER.test(pattern)
    ? pattern.split(NUMBER.exec(pattern)?.[0] ?? '')
    : pattern.split('*');
  const glob = parts.map(part => (part === '' ? '' : quoteWord(part))).join('*');
  return `LC_ALL=C; export LC_ALL
printf '\\n%s\\n' ${STREAM_MAGIC}
for f in ${glob}; do
  [ -e "$f" ] && printf '%s\\0' "$f"
done
printf '\\0'
`;
}

/** The frames, in order, of what a patternScript() has printed. Throws `bad_frames` where there is none. */
export function expandPattern(pattern: Pattern, names: readonly string[]): string[] {
  const frames = NUMBER.test(pattern.pattern)
    ? expandNumbers(pattern, names)
    : expandStar(pattern, names);
  if (frames.length === 0)
    throw new WindlassError('bad_frames', {
      detail: `nothing matches the pattern ${pattern.pattern}${describeRange(pattern)}.`,
      hint: 'Look at the folder with POST /api/remotes/(sid)/browse/(path).',
      extra: { frames: [], count: 0 },
    });
  if (frames.length > MAX_FRAMES)
    throw new WindlassError('bad_frames', {
      detail: `the pattern ${pattern.pattern} matches ${frames.length} frames, more than ${MAX_FRAMES}.`,
      hint: 'Give "first" and "last", or a "step".',
      extra: { frames: [], count: 0 },
    });
  return frames;
}

/** Numbers from the first to the last one; where none is given that is the last before a gap. */
function expandNumbers(
  { pattern, first, last, step = 1 }: Pattern,
  names: readonly string[],
): string[] {
  const [whole = '', zero = '', width = ''] = NUMBER.exec(pattern) ?? [];
  const [before = '', after = ''] = pattern.split(whole);
  const digits = (n: number) =>
    zero ? String(n).padStart(Number(width), '0') : String(n).padStart(Number(width), ' ');
  const pathOf = (n: number) => `${before}${digits(n)}${after}`;
  const there = new Set<number>();
  for (const name of names) {
    if (!name.startsWith(before) || !name.endsWith(after)) continue;
    const number = Number(name.slice(before.length, name.length - after.length).trim());
    if (Number.isSafeInteger(number) && number >= 0 && pathOf(number) === name) there.add(number);
  }
  let from = first ?? Number.POSITIVE_INFINITY;
  if (first === undefined) for (const number of there) from = Math.min(from, number);
  const frames: string[] = [];
  // One more than is allowed shows that there are too many.
  for (let n = from; frames.length <= MAX_FRAMES; n += step) {
    if (last === undefined ? !there.has(n) : n > last) break;
    frames.push(pathOf(n));
  }
  // Where none of them is there, naming each as missing would hide that.
  return last !== undefined && ![...there].some(n => n >= from && n <= last) ? [] : frames;
}

function expandStar(
  { pattern, first = 0, last, step = 1 }: Pattern,
  names: readonly string[],
): string[] {
  return sortNaturally(names, pattern.slice(0, pattern.indexOf('*')))
    .slice(first, last === undefined ? undefined : last + 1)
    .filter((_, position) => position % step === 0);
}

/** Runs of digits by their value, all else by its characters. All names begin with `start`. */
export function sortNaturally(names: readonly string[], start = ''): string[] {
  // Of a million names each step counts, for nothing else runs meanwhile: they are split once, and only where they differ.
  const at = /\D\d*$/.exec(start)?.index ?? 0;
  const split = names.map(name => ({ name, parts: splitDigits(name.slice(at)) }));
  return split.sort((a, b) => compareParts(a.parts, b.parts)).map(({ name }) => name);
}

/** `value` is NaN for what is not a run of digits. */
interface Part {
  text: string;
  value: number;
}

const splitDigits = (name: string): Part[] =>
  (name.match(/\d+|\D+/g) ?? []).map(text => ({
    text,
    value: /^\d/.test(text) ? Number(text) : NaN,
  }));

function compareParts(left: readonly Part[], right: readonly Part[]): number {
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const [a, b] = [left[i] as Part, right[i] as Part];
    if (a.text === b.text) continue;
    const difference = a.value - b.value;
    if (difference) return difference;
    return a.text < b.text ? -1 : 1;
  }
  return left.length - right.length;
}

function describeRange({ first, last }: Pattern): string {
  const from = first === undefined ? '' : ` from ${first}`;
  return last === undefined ? from : `${from} to ${last}`;
}
