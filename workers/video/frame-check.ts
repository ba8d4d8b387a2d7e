import { WindlassError } from '../../shared/errors.ts';
import type { FrameFacts, FrameKind } from './frames.ts';

/** How many frames with problems are named one by one. */
const LISTED = 20;
/** How many of them the error's sentence names. */
const NAMED = 3;

export interface FrameProblem {
  path: string;
  reason: string;
}

/** What has been learnt about the frames of one video: whether they fit together, and what is wrong, by path. */
export class FrameCheck {
  /** The first frame that is a picture: the one that the others must be like. */
  first: FrameFacts | undefined;
  /** How many frames were looked at. */
  looked = 0;
  /** How many of them cannot be used. */
  bad = 0;
  /** True when frames are of several kinds or of one that ffmpeg is not given as it is: they must be decoded by a worker. */
  needsDecode = false;
  /** The first twenty that cannot be used, in the order in which they were looked at. */
  readonly problems: FrameProblem[] = [];
  readonly #mixed: boolean;
  #size: { width: number; height: number } | undefined;

  /** `mixed`: frames of another kind than the first are no problem, because they will be decoded. */
  constructor(options: { mixed?: boolean } = {}) {
    this.#mixed = options.mixed ?? false;
  }

  get ok(): boolean {
    return this.bad === 0;
  }

  /** Takes note of one frame; true when it can be used with those before it. */
  add(path: string, facts: FrameFacts | { problem: string }): boolean {
    this.looked++;
    if ('problem' in facts) return this.#refuse(path, facts.problem);
    this.first ??= facts;
    const kind = nameKind(facts);
    const isOther = facts.kind === 'other' || facts.kind !== this.first.kind;
    if (isOther) this.needsDecode = true;
    if (isOther && !this.#mixed) return this.#refuse(path, describeKind(kind, this.first));
    if (facts.kind === 'other') return true;
    return this.#compareSize(path, facts);
  }

  /** The size of a frame that was looked at before and is decoded now. */
  addSize(path: string, size: { width: number; height: number }): boolean {
    return this.#compareSize(path, size);
  }

  /** A problem of a frame that was looked at before. */
  addProblem(path: string, reason: string): void {
    this.#refuse(path, reason);
  }

  /** Throws WindlassError `bad_frames` where a frame cannot be used: `extra.frames` lists the first twenty, `extra.count` says how many. */
  assertUsable(): void {
    if (!this.ok) throw this.toError();
  }

  toError(): WindlassError {
    const named = this.problems
      .slice(0, NAMED)
      .map(({ path, reason }) => `${showPath(path)} ${reason}`);
    const rest = this.bad - named.length;
    return new WindlassError('bad_frames', {
      detail: `${named.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}.`,
      hint: 'Every frame must be a readable image file of the same size.',
      extra: { frames: this.problems, count: this.bad },
    });
  }

  #compareSize(path: string, { width, height }: { width: number; height: number }): boolean {
    this.#size ??= { width, height };
    const wanted = this.#size;
    if (width === wanted.width && height === wanted.height) return true;
    const sizes = `${width}×${height} pixels, the first is ${wanted.width}×${wanted.height}`;
    return this.#refuse(path, `is of another size: ${sizes}`);
  }

  #refuse(path: string, reason: string): false {
    this.bad++;
    if (this.problems.length < LISTED) this.problems.push({ path, reason });
    return false;
  }
}

function nameKind(facts: FrameFacts): string {
  return facts.kind === 'other' ? facts.format : facts.kind;
}

const KIND_NAMES: Record<FrameKind, string> = { png: 'PNG', jpeg: 'JPEG' };

function describeKind(kind: string, first: FrameFacts): string {
  if (first.kind === 'other') return `is of a kind that must be decoded: ${kind}`;
  return `is of another kind: ${kind.toUpperCase()}, the first is ${KIND_NAMES[first.kind]}`;
}

/** A path on one line of the answer, whatever characters its name holds. */
function showPath(path: string): string {
  return path.replace(/\p{Cc}/gu, char => JSON.stringify(char).slice(1, -1));
}
