import { decodeAhead } from './decode-ahead.ts';
import type { Decoded } from './decode-protocol.ts';
import { DecoderPool, picturesAtOnce } from './decoder-pool.ts';
import { findDamage } from './find-damage.ts';
import { parseFrameHeader } from './frame-header.ts';
import { type FrameInfo, isLarge, type ParsedHeader, type Pictures } from './frame-info.ts';
import type { FrameValidator } from './frame-validator.ts';
import { pixelFormatOf } from './pixel-format.ts';
import type { FrameFailure, ReadFrame } from './read-frames.ts';

type Picture = Pictures & { bytes: Buffer };

interface BegunPicture extends KnownFrame {
  format: 'raw' | 'png' | 'jpeg';
}

/**
 * Converts frames to one kind: the first frame's, if ffmpeg reads that, and otherwise raw pictures, several decoded at
 * once unless they are large. A bad frame ends it with `bad_frames`; errors from reading frames are thrown.
 */
export class FrameNormalizer {
  readonly #frames: AsyncIterator<ReadFrame | FrameFailure>;
  readonly #begun: AsyncGenerator<BegunPicture>;
  readonly #validator: FrameValidator;
  readonly #decoders: DecoderPool;
  /** Decodes every frame, also those that ffmpeg reads. */
  readonly #decodeAll: boolean;
  readonly #skipsFirst: boolean;
  #first: Picture | undefined;

  constructor(
    frames: AsyncIterable<ReadFrame | FrameFailure>,
    validator: FrameValidator,
    {
      background,
      decodeAll = false,
      skipsFirst = false,
    }: { background?: string; decodeAll?: boolean; skipsFirst?: boolean } = {},
  ) {
    this.#frames = frames[Symbol.asyncIterator]();
    this.#begun = decodeAhead(
      this.#frames,
      frame => this.#begin(frame),
      () => picturesAtOnce(this.#first),
    );
    this.#validator = validator;
    this.#decoders = new DecoderPool(background);
    this.#decodeAll = decodeAll;
    this.#skipsFirst = skipsFirst;
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

  /** The pictures for ffmpeg, from the first one on, or from the one after it. */
  async *read(): AsyncGenerator<Buffer> {
    let picture = this.#skipsFirst ? await this.#next() : this.#first;
    for (; picture; picture = await this.#next()) yield picture.bytes;
  }

  /** Stops decoding, and reading after the current frame. */
  close(): void {
    this.#decoders.close();
    this.#frames.return?.().catch(() => undefined);
  }

  /** The next picture, or undefined at the end. */
  async #next(): Promise<Picture | undefined> {
    const { done, value: begun } = await this.#begun.next();
    if (done) return undefined;
    const picture = await this.#toPicture(begun);
    this.#validator.assertUsable();
    return picture;
  }

  #begin(frame: ReadFrame | FrameFailure): BegunPicture {
    const { info, damage } = readInfo(frame);
    const begun = { frame, info, damage, format: 'raw' } as const;
    if ('problem' in info || 'problem' in frame || damage) return begun;
    const target = this.#first?.kind ?? this.#targetOf(info);
    if (info.kind !== 'other' && info.kind === target && this.#hasPlainColours(info)) return begun;
    const format = target === 'png' || target === 'jpeg' ? target : 'raw';
    return { ...begun, format, decoding: this.#decoders.decode(frame.bytes, format, this.#first) };
  }

  /** Judges the frames in their order, whichever was decoded first. */
  async #toPicture(begun: BegunPicture): Promise<Picture | undefined> {
    const { frame, decoding, format } = begun;
    const info = judgeFrame(begun, this.#validator);
    if (!info || 'problem' in frame) return undefined;
    if (!decoding) {
      if (info.kind === 'other') return undefined;
      this.#validator.notePixels(pixelFormatOf(frame.bytes));
      return { ...info, bytes: frame.bytes };
    }
    const decoded = await decoding;
    if ('problem' in decoded) {
      this.#validator.addProblem(frame, decoded.problem);
      return undefined;
    }
    if (!this.#validator.addSize(frame, decoded)) return undefined;
    if (format !== 'raw') this.#validator.notePixels(pixelFormatOf(decoded.bytes));
    return { ...decoded, kind: format };
  }

  /** What all pictures become, by the first frame. */
  #targetOf(info: FrameInfo): Pictures['kind'] {
    if (info.kind === 'other') return 'raw';
    // Blending large ones takes ffmpeg twice the memory of the decoder.
    const isHeavy = info.alpha === true && isLarge(info);
    return (this.#decodeAll || isHeavy) && isDecodable(info) ? 'raw' : info.kind;
  }

  /** Whether the treatment of the first picture's colours suits this one too. */
  #hasPlainColours(info: Exclude<FrameInfo, { kind: 'other' }>): boolean {
    const { alpha, palette } = this.#first ?? info;
    return alpha === true || (!info.alpha && (!info.palette || palette === true));
  }
}

const isDecodable = ({ kind }: FrameInfo) => kind === 'png' || kind === 'jpeg';

/** A frame, what it says of itself, and its picture, which may still be decoded. */
export interface KnownFrame {
  frame: ReadFrame | FrameFailure;
  info: ParsedHeader;
  damage: string | undefined;
  decoding?: Promise<Decoded>;
}

/** Reads what a whole frame says of itself, without decoding it. */
export function readInfo(frame: ReadFrame | FrameFailure): KnownFrame {
  if ('problem' in frame) return { frame, info: { problem: frame.problem }, damage: undefined };
  const info = parseFrameHeader(frame.bytes);
  return { frame, info, damage: 'problem' in info ? undefined : findDamage(frame.bytes) };
}

/** Checks a frame beside those before it; undefined if it cannot be used. */
export function judgeFrame(
  { frame, info, damage }: KnownFrame,
  validator: FrameValidator,
): FrameInfo | undefined {
  // The others need not be of the size of a damaged one.
  const fits = validator.add(frame, damage === undefined ? info : { problem: damage });
  return fits && !('problem' in info) ? info : undefined;
}
