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
 * A script for /bin/sh that prints the paths that may match, each with a NUL, and at last an empty one. Only `*` is
 * expanded; all else is quoted.
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

/** The frames, in order, from the output of patternScript(). Throws `bad_frames` if there is none. */
export function expandPattern(pattern: Pattern, names: readonly string[]): string[] {
  const frames = NUMBER.test(pattern.pattern)
    ? expandNumbers(pattern, names)
    : expandStar(pattern, names);
  if (frames.length === 0)
    throw new WindlassError('bad_frames', {
      detail: `nothing matches the pattern ${pattern.pattern}${describeRange(pattern)}.`,
      hint: 'Look at the directory with POST /api/remotes/(sid)/browse/(path).',
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

/** Numbers from the first to the last; without a given last one, up to the first gap. */
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
  // If none of them exists, listing each as missing would hide that.
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

/** Sorts runs of digits by value, all else by character. All names begin with `start`. */
export function sortNaturally(names: readonly string[], start = ''): string[] {
  // This blocks the event loop, so a million names are compared in place, and only where they may differ.
  const from = /\D\d*$/.exec(start)?.index ?? 0;
  return [...names].sort((a, b) => compareNaturally(a, b, from));
}

/** The names are equal before `from`, where no run of digits continues. */
function compareNaturally(a: string, b: string, from: number): number {
  const most = Math.min(a.length, b.length);
  let at = from;
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  if (at === most) return a.length - b.length;
  let run = at;
  while (run > from && isDigit(a, run - 1)) run--;
  if (isDigit(a, run) && isDigit(b, run)) return compareRuns(digitsAt(a, run), digitsAt(b, run));
  const isRunLonger = at > from && isDigit(a, at) !== isDigit(b, at);
  // A name whose text ends at digits sorts before one whose text goes on.
  if (isRunLonger) return isDigit(a, at) ? -1 : 1;
  return a.charCodeAt(at) - b.charCodeAt(at);
}

function compareRuns(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  if (difference) return difference;
  return a < b ? -1 : 1;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

function digitsAt(text: string, start: number): string {
  let end = start;
  while (isDigit(text, end)) end++;
  return text.slice(start, end);
}

function describeRange({ first, last }: Pattern): string {
  const from = first === undefined ? '' : ` from ${first}`;
  return last === undefined ? from : `${from} to ${last}`;
}
