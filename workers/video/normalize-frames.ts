import { Decoder } from './decoder.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import { parseFrameHeader } from './frame-header.ts';
import type { FrameValidator } from './frame-validator.ts';
import type { Frame, FrameFailure } from './read-frames.ts';

type Picture = Pictures & { bytes: Buffer };

/**
 * Converts frames to pictures of one kind. If ffmpeg reads the first frame's kind, frames of other kinds are decoded and
 * converted to it; otherwise all frames are decoded to raw pictures.
 *
 * After a bad frame no more pictures come: the remaining frames are only validated, so that `bad_frames` names all
 * problems. Errors from reading the frames are thrown.
 */
export class FrameNormalizer {
  readonly #frames: AsyncIterator<Frame | FrameFailure>;
  readonly #validator: FrameValidator;
  readonly #decoder = new Decoder();
  #first: Picture | undefined;

  constructor(frames: AsyncIterable<Frame | FrameFailure>, validator: FrameValidator) {
    this.#frames = frames[Symbol.asyncIterator]();
    this.#validator = validator;
  }

  /** Reads the first frame; returns kind and size of all pictures. */
  async open(): Promise<Pictures> {
    this.#first = await this.#next();
    if (!this.#first) {
      this.#validator.addProblem('the list of frames', 'is empty');
      throw this.#validator.toError();
    }
    const { bytes: _, ...pictures } = this.#first;
    return pictures;
  }

  /** The pictures for ffmpeg, from the first one on. */
  async *read(): AsyncGenerator<Buffer> {
    for (let picture = this.#first; picture; picture = await this.#next()) yield picture.bytes;
  }

  /** Stops decoding, and reading after the current frame. */
  close(): void {
    this.#decoder.close();
    this.#frames.return?.().catch(() => undefined);
  }

  /** The next picture, or undefined at the end; throws `bad_frames` at the end if there are bad frames. */
  async #next(): Promise<Picture | undefined> {
    for (;;) {
      const { done, value: frame } = await this.#frames.next();
      if (done) {
        this.#validator.assertUsable();
        return undefined;
      }
      const picture = await this.#toPicture(frame);
      if (picture && this.#validator.ok) return picture;
    }
  }

  async #toPicture(frame: Frame | FrameFailure): Promise<Picture | undefined> {
    const { path } = frame;
    const info = 'problem' in frame ? { problem: frame.problem } : parseFrameHeader(frame.bytes);
    if (!this.#validator.add(path, info) || 'problem' in info || 'problem' in frame)
      return undefined;
    if (info.kind !== 'other' && info.kind === (this.#first?.kind ?? info.kind)) {
      return { ...info, bytes: frame.bytes };
    }
    const kind = this.#first?.kind ?? 'raw';
    const decoded = await this.#decoder.decode(frame.bytes, kind);
    if ('problem' in decoded) {
      this.#validator.addProblem(path, decoded.problem);
      return undefined;
    }
    return this.#validator.addSize(path, decoded) ? { ...decoded, kind } : undefined;
  }
}
