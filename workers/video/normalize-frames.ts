import { Decoder } from './decoder.ts';
import { findDamage } from './find-damage.ts';
import { parseFrameHeader } from './frame-header.ts';
import { type FrameInfo, isLarge, type Pictures } from './frame-info.ts';
import type { FrameValidator } from './frame-validator.ts';
import type { Frame, FrameFailure } from './read-frames.ts';

type Picture = Pictures & { bytes: Buffer };

/**
 * Converts frames to pictures of one kind. If ffmpeg reads the first frame's kind, frames that do not go with it are decoded
 * and converted to it; otherwise all frames are decoded to raw pictures.
 *
 * A bad frame ends it with `bad_frames`. Errors from reading the frames are thrown.
 */
export class FrameNormalizer {
  readonly #frames: AsyncIterator<Frame | FrameFailure>;
  readonly #validator: FrameValidator;
  readonly #decoder: Decoder;
  /** Decodes every frame, also those that ffmpeg reads. */
  readonly #decodeAll: boolean;
  #first: Picture | undefined;

  constructor(
    frames: AsyncIterable<Frame | FrameFailure>,
    validator: FrameValidator,
    { background, decodeAll = false }: { background?: string; decodeAll?: boolean } = {},
  ) {
    this.#frames = frames[Symbol.asyncIterator]();
    this.#validator = validator;
    this.#decoder = new Decoder(background);
    this.#decodeAll = decodeAll;
  }

  /** Reads the first frame; returns kind and size of all pictures. */
  async open(): Promise<Pictures> {
    this.#first = await this.#next();
    if (!this.#first) {
      this.#validator.addProblem({ index: 0, path: 'the list of frames' }, 'is empty');
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

  /** The next picture, or undefined at the end. */
  async #next(): Promise<Picture | undefined> {
    const { done, value: frame } = await this.#frames.next();
    if (done) return undefined;
    const picture = await this.#toPicture(frame);
    this.#validator.assertUsable();
    return picture;
  }

  async #toPicture(frame: Frame | FrameFailure): Promise<Picture | undefined> {
    const info = checkFrame(frame, this.#validator);
    if (!info || 'problem' in frame) return undefined;
    const target = this.#first?.kind ?? this.#targetOf(info);
    if (info.kind !== 'other' && info.kind === target && this.#hasPlainColours(info))
      return { ...info, bytes: frame.bytes };
    const format = target === 'png' || target === 'jpeg' ? target : 'raw';
    const decoded = await this.#decoder.decode(frame.bytes, format);
    if ('problem' in decoded) {
      this.#validator.addProblem(frame, decoded.problem);
      return undefined;
    }
    return this.#validator.addSize(frame, decoded) ? { ...decoded, kind: format } : undefined;
  }

  /** What all pictures become, by the first frame. */
  #targetOf(info: FrameInfo): Pictures['kind'] {
    if (info.kind === 'other') return 'raw';
    // Blending large ones takes ffmpeg twice the memory of the decoder.
    const isHeavy = info.alpha === true && isLarge(info);
    return (this.#decodeAll || isHeavy) && isDecodable(info) ? 'raw' : info.kind;
  }

  /** Whether what is done with the colours of the first picture is right for this one too. */
  #hasPlainColours(info: Exclude<FrameInfo, { kind: 'other' }>): boolean {
    const { alpha, palette } = this.#first ?? info;
    return alpha === true || (!info.alpha && (!info.palette || palette === true));
  }
}

const isDecodable = ({ kind }: FrameInfo) => kind === 'png' || kind === 'jpeg';

/** Checks a whole frame without decoding it; undefined if it cannot be used. */
export function checkFrame(
  frame: Frame | FrameFailure,
  validator: FrameValidator,
): FrameInfo | undefined {
  const info = 'problem' in frame ? { problem: frame.problem } : parseFrameHeader(frame.bytes);
  if (!validator.add(frame, info) || 'problem' in info || 'problem' in frame) return undefined;
  const damage = findDamage(frame.bytes);
  if (!damage) return info;
  validator.addProblem(frame, damage);
  return undefined;
}
