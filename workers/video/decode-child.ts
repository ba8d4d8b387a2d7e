/**
 * The decoder process. A picture that crashes the decoder or takes all memory affects only this process. It exits at
 * the end of its standard input, and so with its worker.
 */
import { once } from 'node:events';
import sharp, { type Sharp } from 'sharp';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { raiseOomScore } from '../sandbox/oom-score.ts';
import {
  type Decoded,
  type DecodeRequest,
  type PictureFormat,
  readRequest,
  writeAnswer,
} from './decode-protocol.ts';
import { findSizeProblem, MAX_PIXELS } from './frame-header.ts';

/** The loaders of parseFrameHeader()'s formats. Others are blocked, because some can open files. */
const LOADERS = ['Jpeg', 'Png', 'Tiff', 'Webp', 'Nsgif', 'Heif'];
/** Behind transparent pixels. */
const [, , background = '#000000'] = process.argv;
/** Limit of seconds for one frame. */
const TIMEOUT_SECONDS = 60;
/** A space of 16 bits whose colours have signs. */
const LAB16 = 'labs';
/**
 * What libjpeg says of lost data. Some cameras write a few bytes more before a marker, and those before a header are of no
 * picture.
 */
const LOST =
  /Corrupt JPEG data: (?:premature end|bad |found marker|\d{2,} extraneous bytes before marker 0x(?:d[0-9a]|c4))/;

process.title = 'windlass-child-decode';
raiseOomScore();
// Runners send these to all processes of a worker; a frame would count as one that cannot be decoded. It ends with its worker.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
sharp.cache(false);
sharp.concurrency(1);
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: LOADERS.map(name => `VipsForeignLoad${name}`) });
await answerRequests();

async function answerRequests(): Promise<void> {
  const reader = new ByteReader(process.stdin);
  for (;;) {
    const request = await readRequest(reader).catch(() => undefined);
    // The end of standard input.
    if (!request) process.exit(0);
    const answer = await decode(request).catch(describeFailure);
    for (const bytes of writeAnswer(answer)) {
      if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
    }
  }
}

/** libjpeg goes on where data are lost, with a warning; but it also warns of oddities of whole pictures. */
async function decode(request: DecodeRequest): Promise<Decoded> {
  if (request.frame[0] !== 0xff) return decodeOnce(request, 'truncated');
  try {
    return await decodeOnce(request, 'warning');
  } catch (error) {
    if (LOST.test(messageOf(error))) throw error;
    return decodeOnce(request, 'truncated');
  }
}

async function decodeOnce(
  { frame, format, pixels }: DecodeRequest,
  failOn: 'truncated' | 'warning',
): Promise<Decoded> {
  const options = { limitInputPixels: MAX_PIXELS, failOn, pages: 1 } as const;
  const { width, height, depth, space } = await sharp(frame, options).metadata();
  const problem = findSizeProblem(width ?? 0, height ?? 0);
  if (problem) return { problem };
  if (!(depth === 'uchar' || depth === 'ushort' || space === LAB16))
    return { problem: `has samples of the type ${depth}; taken are unsigned ones of 8 or 16 bits` };
  const withoutBytes = { width, height, bytes: Buffer.alloc(0) };
  if (width * height > pixels) return withoutBytes;
  // ffmpeg ignores profiles too. Without one, CMYK would have no meaning.
  const ignoreIcc = space !== 'cmyk';
  const image = sharp(frame, { ...options, ignoreIcc }).timeout({ seconds: TIMEOUT_SECONDS });
  const picture = image.toColourspace('srgb').flatten({ background }).removeAlpha();
  const encoded = encode(picture, format);
  const { data, info } = await encoded.toBuffer({ resolveWithObject: true });
  if (format === 'none') return withoutBytes;
  // A grey picture has one channel in raw form; ffmpeg expects three.
  const bytes = format === 'raw' && info.channels === 1 ? tripleChannel(data) : data;
  return { width: info.width, height: info.height, bytes };
}

function encode(picture: Sharp, format: PictureFormat): Sharp {
  if (format === 'png') return picture.png({ compressionLevel: 1 });
  if (format === 'jpeg') return picture.jpeg({ quality: 98 });
  return picture.raw({ depth: 'uchar' });
}

function tripleChannel(grey: Buffer): Buffer {
  const rgb = Buffer.allocUnsafe(grey.length * 3);
  for (let i = 0; i < grey.length; i++) rgb.fill(grey[i] ?? 0, i * 3, i * 3 + 3);
  return rgb;
}

function describeFailure(error: unknown): Decoded {
  return { problem: `cannot be decoded: ${inPlainWords(messageOf(error))}` };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** libvips names the failed function, and then what the format's library said. */
function inPlainWords(message: string): string {
  const line = message.split('\n', 1)[0] ?? '';
  if (/samples out of range|unsupported tiff image type|not a whole number of bytes/i.test(line))
    return 'its samples are of a type that is not taken';
  if (
    /premature end(?! of data segment)|truncated|unexpected end|end of file|short read|not enough data/i.test(
      line,
    )
  )
    return 'its data end too early';
  if (/unsupported image format|no known loader/i.test(line)) return 'its kind is not taken';
  if (/timeout/i.test(line)) return `it took more than ${TIMEOUT_SECONDS} s`;
  if (/pixel limit/i.test(line)) return 'it has too many pixels';
  return `its data are damaged (${line.replace(/^Vips\w*: |^Error: /, '')})`;
}
