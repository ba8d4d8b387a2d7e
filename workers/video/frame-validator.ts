import { WindlassError } from '../../shared/errors.ts';
import type { FrameInfo, FrameKind } from './frame-header.ts';

/** How many frames with problems the error lists. */
const MAX_LISTED = 20;
/** How many of them its detail names. */
const MAX_NAMED = 3;

export interface FrameProblem {
  path: string;
  reason: string;
}

/** Checks that the frames of one video fit together, and collects the problems by path. */
export class FrameValidator {
  /** The first frame that is a picture; the others must match it. */
  first: FrameInfo | undefined;
  /** How many frames were checked. */
  checked = 0;
  /** How many of them cannot be used. */
  bad = 0;
  /** Whether a worker must decode frames: they are of several kinds, or of one that ffmpeg does not read from a pipe. */
  needsDecode = false;
  /** The first twenty that cannot be used, in the order of the checks. */
  readonly problems: FrameProblem[] = [];
  readonly #mixed: boolean;
  #size: { width: number; height: number } | undefined;

  /** `mixed`: frames of another kind than the first are allowed, because they are decoded. */
  constructor(options: { mixed?: boolean } = {}) {
    this.#mixed = options.mixed ?? false;
  }

  get ok(): boolean {
    return this.bad === 0;
  }

  /** Checks one frame; true if it fits those before it. */
  add(path: string, info: FrameInfo | { problem: string }): boolean {
    this.checked++;
    if ('problem' in info) return this.addProblem(path, info.problem);
    this.first ??= info;
    const isOther = info.kind === 'other' || info.kind !== this.first.kind;
    if (isOther) this.needsDecode = true;
    if (isOther && !this.#mixed) return this.addProblem(path, describeKind(info, this.first));
    if (info.kind === 'other') return true;
    return this.addSize(path, info);
  }

  /** Checks the size of a frame; for one that was added before and has been decoded since. */
  addSize(path: string, { width, height }: { width: number; height: number }): boolean {
    this.#size ??= { width, height };
    const wanted = this.#size;
    if (width === wanted.width && height === wanted.height) return true;
    const sizes = `${width}×${height} pixels, the first is ${wanted.width}×${wanted.height}`;
    return this.addProblem(path, `is of another size: ${sizes}`);
  }

  /** Records a problem of a frame, which may have been added before. */
  addProblem(path: string, reason: string): false {
    this.bad++;
    if (this.problems.length < MAX_LISTED) this.problems.push({ path, reason });
    return false;
  }

  /** Throws WindlassError `bad_frames` if a frame cannot be used; `extra` has the first twenty as `frames`, and their `count`. */
  assertUsable(): void {
    if (!this.ok) throw this.toError();
  }

  toError(): WindlassError {
    const named = this.problems
      .slice(0, MAX_NAMED)
      .map(({ path, reason }) => `${showPath(path)} ${reason}`);
    const rest = this.bad - named.length;
    return new WindlassError('bad_frames', {
      detail: `${named.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}.`,
      hint: 'Every frame must be a readable image file of the same size.',
      extra: { frames: this.problems, count: this.bad },
    });
  }
}

const KIND_NAMES: Record<FrameKind, string> = { png: 'PNG', jpeg: 'JPEG' };

function describeKind(info: FrameInfo, first: FrameInfo): string {
  const kind = info.kind === 'other' ? info.format : info.kind;
  if (first.kind === 'other') return `is of a kind that must be decoded: ${kind}`;
  return `is of another kind: ${kind.toUpperCase()}, the first is ${KIND_NAMES[first.kind]}`;
}

/** The path with control characters escaped, so that it fits on one line. */
function showPath(path: string): string {
  return path.replace(/\p{Cc}/gu, char => JSON.stringify(char).slice(1, -1));
}
