import { WindlassError } from '../../shared/errors/errors.ts';
import { readFramePattern } from '../../shared/jobs/payloads/frame-pattern.ts';
import { MAX_FRAMES } from '../../shared/jobs/payloads/video.ts';
import { sortNaturally } from '../../shared/sort-naturally.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { showPath } from './frame-path.ts';
import { STREAM_MAGIC } from './frame-stream.ts';

/** The most bytes of all paths that a pattern stands for: they are held in memory, and are written into scripts, at once. */
const MAX_PATH_BYTES = 2 ** 25;

export interface Pattern {
  /** An absolute path with one `%d` or `%05d`, or with `*`. */
  pattern: string;
  /** The first number, or the first position from 0 of what `*` matches. */
  first?: number;
  last?: number;
  step?: number;
}

/** Where the numbers of a pattern leave one out, and no last one was given. */
export interface FrameGap {
  /** The frame that is missing. */
  path: string;
  /** How many frames of the pattern are there after it. */
  after: number;
}

export interface Expanded {
  frames: string[];
  gap?: FrameGap;
}

type Numbers = Extract<ReturnType<typeof readFramePattern>, { before: string }>;

/**
 * A script for /bin/sh that prints the paths that may match, each with a NUL, and at last an empty one. Only `*` is
 * expanded; all else is quoted. A link to nowhere is a frame that is missing.
 */
export function patternScript({ pattern }: Pattern): string {
  const read = readFramePattern(pattern);
  const parts = read && 'before' in read ? [read.before, read.after] : pattern.split('*');
  const glob = parts.map(part => (part === '' ? '' : quoteWord(part))).join('*');
  return `LC_ALL=C; export LC_ALL
printf '\\n%s\\n' ${STREAM_MAGIC}
for f in ${glob}; do
  { [ -e "$f" ] || [ -L "$f" ]; } && printf '%s\\0' "$f"
done
printf '\\0'
`;
}

/** The frames, in order, from the output of patternScript(). Throws `bad_frames` if there is none. */
export function expandPattern(pattern: Pattern, names: readonly string[]): Expanded {
  const read = readFramePattern(pattern.pattern);
  const expanded =
    read && 'before' in read
      ? expandNumbers(read, pattern, names)
      : { frames: expandStar(pattern, names) };
  const { frames } = expanded;
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
  if (countBytes(frames) > MAX_PATH_BYTES)
    throw new WindlassError('bad_frames', {
      detail: `the paths of the frames that ${pattern.pattern} matches have more than ${MAX_PATH_BYTES} bytes together.`,
      hint: 'Give a shorter path, such as that of a link to the folder, or "first" and "last", or a "step".',
      extra: { frames: [], count: 0 },
    });
  return expanded;
}

/** Numbers from the first to the last; without a given last one, up to the first gap. */
function expandNumbers(
  { before, after, width, fill }: Numbers,
  { first, last, step = 1 }: Pattern,
  names: readonly string[],
): Expanded {
  const pathOf = (n: number) => `${before}${String(n).padStart(width, fill)}${after}`;
  const there = new Set<number>();
  for (const name of names) {
    if (!name.startsWith(before) || !name.endsWith(after)) continue;
    const number = Number(name.slice(before.length, name.length - after.length).trim());
    if (Number.isSafeInteger(number) && number >= 0 && pathOf(number) === name) there.add(number);
  }
  let from = first ?? Number.POSITIVE_INFINITY;
  if (first === undefined) for (const number of there) from = Math.min(from, number);
  const frames: string[] = [];
  // One more frame, or byte, than is allowed shows that there are too many.
  let n = from;
  for (let bytes = 0; frames.length <= MAX_FRAMES && bytes <= MAX_PATH_BYTES; n += step) {
    if (last === undefined ? !there.has(n) : n > last) break;
    const path = pathOf(n);
    frames.push(path);
    bytes += Buffer.byteLength(path);
  }
  // If none of them exists, listing each as missing would hide that.
  if (last !== undefined)
    return { frames: [...there].some(m => m >= from && m <= last) ? frames : [] };
  const beyond = [...there].filter(m => m > n && (m - from) % step === 0);
  return beyond.length > 0
    ? { frames, gap: { path: showPath(pathOf(n)), after: beyond.length } }
    : { frames };
}

function expandStar(
  { pattern, first = 0, last, step = 1 }: Pattern,
  names: readonly string[],
): string[] {
  return sortNaturally(names, pattern.slice(0, pattern.indexOf('*')))
    .slice(first, last === undefined ? undefined : last + 1)
    .filter((_, position) => position % step === 0);
}

const countBytes = (paths: readonly string[]) =>
  paths.reduce((sum, path) => sum + Buffer.byteLength(path), 0);

function describeRange({ first, last }: Pattern): string {
  const from = first === undefined ? '' : ` from ${first}`;
  return last === undefined ? from : `${from} to ${last}`;
}
