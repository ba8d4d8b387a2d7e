import { z } from 'zod';
import { WindlassError } from '../../../shared/errors/errors.ts';
import { JOBS } from '../../../shared/jobs/catalog.ts';
import { invalidInput } from '../../http/validate.ts';
import { jobName } from './job-name.ts';

const shape = { ...JOBS.video.payload.shape, ...JOBS.video.rules };
export const newVideo = z
  .strictObject({
    'content-type': z.unknown().optional().describe('video/mp4 or video/webm; required.'),
    images: z
      .unknown()
      .optional()
      .describe('Absolute paths of the frames on the host, in order; required without `pattern`.'),
    pattern: shape.pattern.describe(
      'Instead of `images`: an absolute path with one number, such as `%05d`, or with `*`; expanded on the host.',
    ),
    first: shape.first.describe(
      'First number of the pattern; with `*` the first position, from 0.',
    ),
    last: shape.last.describe(
      'Last number or position. Absent: up to the first number that is missing.',
    ),
    step: shape.step.describe('Each so-manieth number or position; 1 unless given.'),
    fps: shape.fps.default(25),
    codec: shape.codec.describe(
      'h264 or av1 for video/mp4, vp9 or av1 for video/webm; absent: the first of these.',
    ),
    background: shape.background.describe('Behind transparent pixels; black unless given.'),
    'on-bad-frame': shape.onBadFrame.describe(
      '`skip` leaves out frames that cannot be used; `fail` unless given.',
    ),
    label: shape.label.describe(
      'Drawn into the upper left corner of each frame: its index in the list or the expansion, from 0, or the name of its file.',
    ),
    width: shape.width,
    quality: shape.quality,
    encode: shape.encode,
    project: z
      .string()
      .optional()
      .describe('Project whose cache gets the video once it is ready, with `key`.'),
    key: z.string().optional(),
    name: jobName,
  })
  .meta({ id: 'NewVideo' });
type NewVideo = Omit<z.infer<typeof newVideo>, 'project' | 'key' | 'name'>;

/** What the API alone can say of a video that is asked for; the rest is told by its fields' types. */
export function readVideo({
  'content-type': contentType,
  'on-bad-frame': onBadFrame,
  images,
  ...options
}: NewVideo) {
  const type = readType(contentType);
  checkCodec(type, options.codec);
  if (options.pattern === undefined)
    return { ...options, ...refuseRange(options), type, onBadFrame, images: readImages(images) };
  if (images !== undefined)
    throw invalidInput(
      [{ field: 'pattern', problem: 'is given beside images' }],
      'Give either "images" or "pattern".',
    );
  const { first, last } = options;
  if (first !== undefined && last !== undefined && first > last)
    throw invalidInput([{ field: 'last', problem: 'is less than first' }], 'Give a greater one.');
  return { ...options, type, onBadFrame };
}

const CODECS = { 'video/mp4': ['h264', 'av1'], 'video/webm': ['vp9', 'av1'] };

function checkCodec(type: keyof typeof CODECS, codec: string | undefined): void {
  if (codec === undefined || CODECS[type].includes(codec)) return;
  throw invalidInput(
    [{ field: 'codec', problem: `is not one of ${type}` }],
    `Use ${CODECS[type].join(' or ')}, or another content-type.`,
  );
}

/** Without a pattern there are no numbers to begin and end with. */
function refuseRange(options: Partial<NewVideo>): object {
  const field = (['first', 'last', 'step'] as const).find(name => options[name] !== undefined);
  if (!field) return {};
  throw invalidInput([{ field, problem: 'needs pattern' }], 'Give "pattern" too, or leave it out.');
}

function readType(type: unknown): 'video/mp4' | 'video/webm' {
  if (type === undefined)
    throw new WindlassError('missing_content_type', {
      hint: 'Give "content-type": "video/mp4" or "video/webm".',
    });
  const parsed = shape.type.safeParse(type);
  if (parsed.success) return parsed.data;
  throw new WindlassError('unsupported_video_type', {
    detail: `${JSON.stringify(type).slice(0, 80)}.`,
    hint: 'Use "video/mp4" or "video/webm".',
  });
}

function readImages(images: unknown): string[] {
  if (images === undefined || (Array.isArray(images) && images.length === 0)) {
    throw new WindlassError('missing_images', {
      hint: 'Give "images": the absolute paths of the frames on the host, in order, or a "pattern".',
    });
  }
  const parsed = shape.images.unwrap().safeParse(images);
  if (parsed.success) return parsed.data;
  const { path, message: problem } = parsed.error.issues[0] ?? { path: [], message: '' };
  const field = ['images', ...path].join('.');
  throw invalidInput([{ field, problem }], 'Give absolute paths on the host.');
}
