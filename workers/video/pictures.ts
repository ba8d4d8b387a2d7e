import type { Wanted } from './decode-protocol.ts';
import { Decoder } from './decoder.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import type { FrameCheck } from './frame-check.ts';
import { inspectFrame } from './frames.ts';
import type { Frame, FrameFailure } from './read-frames.ts';

export interface PictureSource {
  pictures: Pictures;
  /** One picture after the other, as ffmpeg is to read them. Throws `bad_frames` at the end of the frames if one cannot be used. */
  bytes: AsyncIterable<Buffer>;
  /** Stops reading and decoding. */
  close(): Promise<void>;
}

/**
 * Turns frames into pictures of one kind: that of the first, where ffmpeg reads it; frames of another
 * kind are decoded and made into this one. Where the first must be decoded all are, to raw pictures.
 * The first frame is read before this returns. Throws `bad_frames`, and what reading throws.
 *
 * After a frame that cannot be used ffmpeg is given nothing more, and the rest is read only to name
 * everything that is wrong at once.
 */
export async function openPictures(
  frames: AsyncIterable<Frame | FrameFailure>,
  check: FrameCheck,
): Promise<PictureSource> {
  const decoder = new Decoder();
  const iterator = frames[Symbol.asyncIterator]();
  const close = async () => {
    decoder.close();
    await iterator.return?.();
  };
  const picture = (frame: Frame | FrameFailure, wanted: Wanted | undefined) => toPicture({ frame, wanted, check, decoder });
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      // Nothing to begin with: every frame is named that cannot be used.
      if (done) throw check.toError();
      const first = await picture(value, undefined);
      if (!first) continue;
      const { bytes, ...pictures } = first;
      return { pictures, close, bytes: check.ok ? continuePictures(bytes) : drain() };
    }
  } catch (error) {
    await close();
    throw error;
  }

  async function* continuePictures(first: Buffer): AsyncGenerator<Buffer> {
    yield first;
    const wanted = wantedKind;
    for (;;) {
      const { done, value } = await iterator.next();
      if (done) break;
      const next = await picture(value, wanted);
      if (next && check.ok) yield next.bytes;
    }
    check.assertUsable();
  }
}
