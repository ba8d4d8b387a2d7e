import { Decoder } from './decoder.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import type { FrameCheck } from './frame-check.ts';
import { inspectFrame } from './frames.ts';
import type { Frame, FrameFailure } from './read-frames.ts';

type Picture = Pictures & { bytes: Buffer };

/**
 * Turns frames into pictures of one kind: that of the first, where ffmpeg reads it; frames of another
 * kind are decoded and made into this one. Where the first must be decoded all are, to raw pictures.
 *
 * After a frame that cannot be used no more pictures come: the rest is read only to name everything
 * that is wrong at once, in `bad_frames`. What reading the frames throws is passed on.
 */
export class FrameNormalizer {
  readonly #frames: AsyncIterator<Frame | FrameFailure>;
  readonly #check: FrameCheck;
  readonly #decoder = new Decoder();
  #first: Picture | undefined;

  constructor(frames: AsyncIterable<Frame | FrameFailure>, check: FrameCheck) {
    this.#frames = frames[Symbol.asyncIterator]();
    this.#check = check;
  }

  /** Reads the first frame: what all the pictures will be. */
  async open(): Promise<Pictures> {
    this.#first = await this.#next();
    if (!this.#first) {
      this.#check.addProblem('the list of frames', 'is empty');
      throw this.#check.toError();
    }
    const { bytes: _, ...pictures } = this.#first;
    return pictures;
  }

  /** The pictures from the first on, as ffmpeg is to read them. */
  async *read(): AsyncGenerator<Buffer> {
    for (let picture = this.#first; picture; picture = await this.#next()) yield picture.bytes;
  }

  /** Stops decoding, and reading as soon as the frame that is on its way has come. */
  close(): void {
    this.#decoder.close();
    this.#frames.return?.().catch(() => undefined);
  }

  /** The next picture, or undefined at the end; throws there when a frame could not be used. */
  async #next(): Promise<Picture | undefined> {
    for (;;) {
      const { done, value: frame } = await this.#frames.next();
      if (done) {
        this.#check.assertUsable();
        return undefined;
      }
      const picture = await this.#toPicture(frame);
      if (picture && this.#check.ok) return picture;
    }
  }

  async #toPicture(frame: Frame | FrameFailure): Promise<Picture | undefined> {
    const { path } = frame;
    const facts = 'problem' in frame ? { problem: frame.problem } : inspectFrame(frame.bytes);
    if (!this.#check.add(path, facts) || 'problem' in facts || 'problem' in frame) return undefined;
    if (facts.kind !== 'other' && facts.kind === (this.#first?.kind ?? facts.kind)) {
      return { ...facts, bytes: frame.bytes };
    }
    const kind = this.#first?.kind ?? 'raw';
    const decoded = await this.#decoder.decode(frame.bytes, kind);
    if ('problem' in decoded) {
      this.#check.addProblem(path, decoded.problem);
      return undefined;
    }
    return this.#check.addSize(path, decoded) ? { ...decoded, kind } : undefined;
  }
}
