import { availableParallelism } from 'node:os';
import type { Decoded, PictureFormat } from './decode-protocol.ts';
import { Decoder } from './decoder.ts';
import type { Size } from './frame-info.ts';

/** Pictures that one video decodes at once: its ffmpeg and other jobs need processors too. */
const AT_ONCE = Math.min(4, availableParallelism());
/** Bytes of pictures decoded at once: above 4096×2730 pixels there is only one. */
const BYTES_AT_ONCE = 64 << 20;

/** How many pictures of this size are decoded at once; one while the size is unknown. */
export function picturesAtOnce(size: Size | undefined): number {
  if (!size) return 1;
  const fitting = Math.floor(BYTES_AT_ONCE / (3 * size.width * size.height));
  return Math.max(1, Math.min(AT_ONCE, fitting));
}

/** As many decoders as are used at once. */
export class DecoderPool {
  readonly #all: Decoder[] = [];
  readonly #idle: Decoder[] = [];
  readonly #background: string | undefined;
  #isClosed = false;

  /** `background`: as of a Decoder. */
  constructor(background?: string) {
    this.#background = background;
  }

  /** Decodes a picture beside others, unless it has more pixels than `size`. Throws as Decoder does. */
  async decode(frame: Buffer, format: PictureFormat, size?: Size): Promise<Decoded> {
    const decoder = this.#idle.pop() ?? this.#add();
    const decoded = await decoder.decode(frame, format, size && size.width * size.height);
    this.#idle.push(decoder);
    return decoded;
  }

  /** Kills all children; pictures that are being decoded become problems. */
  close(): void {
    this.#isClosed = true;
    for (const decoder of this.#all) decoder.close();
  }

  #add(): Decoder {
    const decoder = new Decoder(this.#background);
    if (this.#isClosed) decoder.close();
    this.#all.push(decoder);
    return decoder;
  }
}
