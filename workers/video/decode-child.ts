/**
 * A process of its own that decodes pictures: what a broken or hostile one does to the decoder (a
 * crash, all the memory) is done to this process alone. It ends when its standard input does, so it
 * never outlives the worker that started it.
 */
import { once } from 'node:events';
import sharp, { type Sharp } from 'sharp';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { raiseOomScore } from '../sandbox/oom-score.ts';
import { type Decoded, readRequest, type Wanted, writeAnswer } from './decode-protocol.ts';
import { findSizeProblem, MAX_PIXELS } from './frames.ts';

/** Loaders of exactly the formats that inspectFrame() names; others, some of which can open files, are locked. */
const LOADERS = ['Jpeg', 'Png', 'Tiff', 'Webp', 'Nsgif', 'Heif'].map(
  name => `VipsForeignLoad${name}`,
);
/** A frame that takes longer than this is refused. */
const SECONDS_PER_FRAME = 60;

process.title = 'windlass-child-decode';
raiseOomScore();
sharp.cache(false);
sharp.concurrency(1);
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: LOADERS });
await answerRequests();

async function answerRequests(): Promise<void> {
  const reader = new ByteReader(process.stdin);
  for (;;) {
    const request = await readRequest(reader).catch(() => undefined);
    // The end of standard input: the worker is done, or gone.
    if (!request) process.exit(0);
    const answer = await decode(request.frame, request.wanted).catch(describeFailure);
    for (const bytes of writeAnswer(answer)) {
      if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
    }
  }
}

async function decode(frame: Buffer, wanted: Wanted): Promise<Decoded> {
  const options = { limitInputPixels: MAX_PIXELS, failOn: 'truncated', pages: 1 } as const;
  const image = sharp(frame, options).timeout({ seconds: SECONDS_PER_FRAME });
  const { width, height } = await image.metadata();
  const problem = findSizeProblem(width ?? 0, height ?? 0);
  if (problem) return { problem };
  // Transparency is dropped, not blended, as ffmpeg drops it from frames that it reads itself.
  const picture = image.toColourspace('srgb').removeAlpha();
  const encoded = encode(picture, wanted);
  const { data, info } = await encoded.toBuffer({ resolveWithObject: true });
  // A grey picture stays one channel in raw form; ffmpeg was told of three.
  const bytes = wanted === 'raw' && info.channels === 1 ? tripleChannel(data) : data;
  return { width: info.width, height: info.height, bytes };
}

function encode(picture: Sharp, wanted: Wanted): Sharp {
  if (wanted === 'png') return picture.png({ compressionLevel: 1 });
  if (wanted === 'jpeg') return picture.jpeg({ quality: 98 });
  return picture.raw({ depth: 'uchar' });
}

function tripleChannel(grey: Buffer): Buffer {
  const rgb = Buffer.allocUnsafe(grey.length * 3);
  for (let i = 0; i < grey.length; i++) rgb.fill(grey[i] ?? 0, i * 3, i * 3 + 3);
  return rgb;
}

function describeFailure(error: unknown): Decoded {
  const words = error instanceof Error ? error.message : String(error);
  return { problem: `cannot be decoded: ${words.split('\n', 1)[0]}` };
}
