import { WindlassError } from '../../shared/errors/errors.ts';
import { describeDifference, describeUnfit } from './describe-kind.ts';
import { MAX_PIXELS } from './frame-header.ts';
import type { FrameInfo, Size } from './frame-info.ts';
import { showPath } from './frame-path.ts';

/** How many frames with problems the error lists. */
const MAX_LISTED = 100;
/** How many of them its detail names. */
const MAX_NAMED = 3;

const USABLE = 'Every frame must be a readable image file of the same size.';
const SKIP = '"on-bad-frame": "skip" leaves out those that are not.';

/** A frame, by its place in the list. */
export interface Frame {
  /** The frame's place, from 0, in the list or in what the pattern matched. */
  index: number;
  path: string;
}

export interface FrameProblem extends Frame {
  reason: string;
}

/** Checks that the frames of one video fit together, and collects the problems. */
export class FrameValidator {
  /** The first frame that is a picture; the others must match it. */
  first: FrameInfo | undefined;
  /** How many frames were checked. */
  checked = 0;
  /** The first frame that a host cannot take as one of these, and why. */
  needsWorker: string | undefined;
  /** Whether their pixels are stored in several ways: see pixel-format.ts. */
  varies = false;
  #stored: string | undefined;
  readonly #reasons = new Map<number, FrameProblem>();
  readonly #pixels: number;
  readonly #hint: string;
  #size: Size | undefined;
  /** The frame that decides size and kind. */
  #model: (Frame & Size) | undefined;
  /** Those whose size or kind is another. */
  readonly #differing = new Set<number>();

  /** `pixels`: of the largest frame. `onBadFrame`: what was asked for, so that no hint advises the same. */
  constructor(pixels = MAX_PIXELS, onBadFrame?: 'fail' | 'skip') {
    this.#pixels = pixels;
    this.#hint = onBadFrame === 'skip' ? USABLE : `${USABLE} ${SKIP}`;
  }

  /** That of the first frame of which it is known. */
  get size(): Size | undefined {
    return this.#size;
  }

  get ok(): boolean {
    return this.#reasons.size === 0;
  }

  /** How many frames cannot be used. */
  get bad(): number {
    return this.#reasons.size;
  }

  /** The first hundred unusable frames, in list order; their paths can be shown. */
  get problems(): FrameProblem[] {
    const found = [...this.#reasons.values()].sort((a, b) => a.index - b.index);
    return found.slice(0, MAX_LISTED).map(each => ({ ...each, path: showPath(each.path) }));
  }

  isBad(index: number): boolean {
    return this.#reasons.has(index);
  }

  /** Checks one frame; true if it fits those before it. */
  add(frame: Frame, info: FrameInfo | { problem: string }): boolean {
    this.checked++;
    if ('problem' in info) return this.addProblem(frame, info.problem);
    this.first ??= info;
    const fits = fitsTogether(info, this.first);
    if (!fits && !(isDecoded(info) && isDecoded(this.first))) {
      const isOfKind = info.kind !== 'other' && info.kind === this.first.kind;
      if (isOfKind && !this.addSize(frame, info)) return false;
      return this.#addDiffering(frame, describeDifference(info, this.first));
    }
    const reason = describeUnfit(info) ?? (fits ? undefined : describeDifference(info, this.first));
    if (reason !== undefined) this.needsWorker ??= `${showPath(frame.path)} ${reason}`;
    return info.kind === 'other' || this.addSize(frame, info);
  }

  /** Notes the pixel format of a frame as ffmpeg gets it. */
  notePixels(format: string): void {
    this.#stored ??= format;
    this.varies ||= format !== this.#stored;
  }

  /** Checks a frame's size, for one that was added earlier and decoded since. */
  addSize(frame: Frame, { width, height }: Size): boolean {
    if (width * height > this.#pixels)
      return this.addProblem(
        frame,
        `is too large: ${width}×${height} pixels, at most ${this.#pixels} (LIMIT_FRAME_PIXELS)`,
      );
    this.#size ??= { width, height };
    this.#model ??= { ...frame, width, height };
    const wanted = this.#size;
    if (width === wanted.width && height === wanted.height) return true;
    const sizes = `${width}×${height} pixels, the first is ${wanted.width}×${wanted.height}`;
    return this.#addDiffering(frame, `is of another size: ${sizes}`);
  }

  /** Records a problem of a frame, which may have been added before. */
  addProblem({ index, path }: Frame, reason: string): false {
    if (!this.#reasons.has(index)) this.#reasons.set(index, { index, path, reason });
    return false;
  }

  #addDiffering(frame: Frame, reason: string): false {
    if (!this.isBad(frame.index)) this.#differing.add(frame.index);
    return this.addProblem(frame, reason);
  }

  /**
   * Throws WindlassError `bad_frames` where more frames differ from the first than go with it: the first one is the odd
   * one, and those that go with it are not the video that was meant.
   */
  assertTypical(): void {
    const model = this.#model;
    const good = this.checked - this.bad;
    if (!model || this.#differing.size <= good) return;
    const path = showPath(model.path);
    const differing = `${this.#differing.size} of ${this.checked} frames differ from it`;
    const reason = `has ${model.width}×${model.height} pixels, and ${differing}`;
    throw new WindlassError('bad_frames', {
      detail: `the first frame decides size and kind: ${path} ${reason}.`,
      hint: 'Leave it out, as by "first" or another pattern.',
      extra: { frames: [{ index: model.index, path, reason }], count: 1 },
    });
  }

  /**
   * Throws WindlassError `bad_frames` for unusable frames; `extra` has the first hundred as `frames`, their `count`,
   * and the details of a failed ffmpeg.
   */
  assertUsable(ffmpeg: Record<string, unknown> = {}): void {
    if (!this.ok) throw this.toError(ffmpeg);
  }

  toError(ffmpeg: Record<string, unknown> = {}): WindlassError {
    const { problems } = this;
    const named = problems.slice(0, MAX_NAMED).map(({ path, reason }) => `${path} ${reason}`);
    const rest = this.bad - named.length;
    return new WindlassError('bad_frames', {
      detail: `${named.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}.`,
      hint: this.#hint,
      extra: { ...ffmpeg, frames: problems, count: this.bad },
    });
  }
}

/** Whether ffmpeg reads the frame in one go with the first one. */
function fitsTogether(info: FrameInfo, first: FrameInfo): boolean {
  if (info.kind === 'other' || first.kind === 'other') return info.kind === first.kind;
  if (info.kind !== first.kind) return false;
  // The first frame determines how transparency and palettes are resolved.
  if (info.alpha && !first.alpha) return false;
  return !info.palette || first.palette === true || first.alpha === true;
}

/** Whether the worker's decoder reads the kind. */
export const isDecoded = ({ kind }: FrameInfo) =>
  kind === 'other' || kind === 'png' || kind === 'jpeg';
