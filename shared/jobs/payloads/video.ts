import { z } from 'zod';
import { absolutePath } from './absolute-path.ts';
import { hasOnlyItsSigns, readFramePattern } from './frame-pattern.ts';

/** Frames of one video, at most. */
export const MAX_FRAMES = 100_000;

/** Elsewhere they are not special. */
const framePattern = absolutePath.refine(
  path => readFramePattern(path) !== undefined,
  'must hold one number, such as %05d, or *, in the name of the file, or else in its folder',
);
/** The number of a frame in the names that a pattern matches. */
const framePosition = z.number().int().min(0).max(1e15);

/** How the small pictures of a video lie in its sprite, row by row. */
const spriteTiles = z
  .object({
    count: z.number().int(),
    columns: z.number().int(),
    width: z.number().int(),
    height: z.number().int(),
    every: z.number().describe('Seconds from one to the next.'),
    duration: z.number().describe('Seconds of the whole video.'),
  })
  .meta({ id: 'SpriteTiles' });
export type SpriteTiles = z.infer<typeof spriteTiles>;

/** A frame that was left out. */
export const skippedFrame = z
  .object({
    index: z.number().int().describe('From 0, in the list or in what the pattern matched.'),
    path: z.string(),
    reason: z.string(),
  })
  .meta({ id: 'SkippedFrame' });

/** Why a video of a pattern has fewer frames than are there. */
export const frameGap = z
  .object({
    path: z.string().describe('The first frame that is missing.'),
    after: z.number().int().describe('How many frames of the pattern are there after it.'),
  })
  .meta({ id: 'FrameGap' });

export const videoPayload = z.object({
  type: z.enum(['video/mp4', 'video/webm']),
  /** The list, or a pattern that is expanded on the host. */
  images: z.array(z.string()).optional(),
  pattern: z.string().optional(),
  first: z.number().int().optional(),
  last: z.number().int().optional(),
  step: z.number().int().optional(),
  fps: z.number(),
  codec: z.enum(['h264', 'vp9', 'av1']).optional(),
  background: z.string().optional(),
  onBadFrame: z.enum(['fail', 'skip']).optional(),
  label: z.enum(['frame', 'name']).optional(),
  width: z.number().int().optional(),
  quality: z.number().optional(),
  encode: z.enum(['host', 'worker']).optional(),
  /** The project cache that refers to the video once it is ready. */
  cache: z.object({ project: z.string(), key: z.string() }).optional(),
});

/** A pattern with further signs, as in `/50%damping/%d.png`, needs version 5: older workers refuse it. */
export const videoVersion = ({ pattern }: z.output<typeof videoPayload>) =>
  pattern !== undefined && !hasOnlyItsSigns(pattern) ? 5 : 4;

/** Rules for what is sent. */
export const videoRules = {
  images: z.array(absolutePath).min(1).max(MAX_FRAMES).optional(),
  pattern: framePattern.optional(),
  first: framePosition.optional(),
  last: framePosition.optional(),
  step: z.number().int().min(1).max(1e9).optional(),
  fps: z.number().min(0.1).max(120),
  background: z
    .string()
    .regex(/^#[0-9a-fA-F]{6}$/, 'must be a colour such as #ffffff')
    .optional(),
  width: z.number().int().min(2).max(7680).optional(),
  quality: z.number().min(0).max(1).optional(),
};

export const videoResult = z.object({
  object: z.string(),
  type: z.enum(['video/mp4', 'video/webm']),
  bytes: z.number().int(),
  /** What it and its stills have together. */
  stored: z.number().int(),
  frames: z.number().int(),
  encoded: z.enum(['host', 'worker']),
  /** The first hundred that were left out, and how many all were. */
  skipped: z.array(skippedFrame).optional(),
  skippedCount: z.number().int().optional(),
  /** Where the pattern ended, without a last number, though more frames follow. */
  gap: frameGap.optional(),
  /** Why the cache that it was for has not got it. */
  uncached: z.string().optional(),
  /** Objects: the first picture, and small pictures side by side, for what shows a video before it is played. */
  poster: z.string().optional(),
  sprite: z.string().optional(),
  tiles: spriteTiles.optional(),
});
