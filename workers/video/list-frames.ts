import type { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Payload } from '../../shared/jobs/catalog.ts';
import { MAX_FRAMES } from '../../shared/jobs/payloads/video.ts';
import type { JobContext } from '../context.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { withSession } from '../ssh/reconnect.ts';
import { decodePath } from './frame-path.ts';
import { type Expanded, expandPattern, type Pattern, patternScript } from './frame-pattern.ts';
import { openFrameStream, STREAM_MAGIC } from './frame-stream.ts';
import type { Frame } from './frame-validator.ts';

/** The most names that a pattern may match: all are sorted before "first", "last" and "step" choose. */
const MAX_LISTED = 10 * MAX_FRAMES;
const MAX_LISTED_BYTES = 2 ** 28;
/** The most bytes of one path on the host. */
const MAX_PATH_BYTES = 2 ** 16;

/** The frames of a video, as given or as the pattern matches on the host. */
export async function listFrames(
  context: JobContext<'video'>,
): Promise<Omit<Expanded, 'frames'> & { frames: Frame[] }> {
  const { payload, signal } = context;
  if (payload.images) return { frames: toFrames(payload.images) };
  const { frames, ...gap } = await withSession(context, async session => {
    const pattern = toPattern(payload);
    const stdout = await openFrameStream(session, patternScript(pattern), signal);
    return expandPattern(pattern, await readNames(stdout, signal));
  });
  return { frames: toFrames(frames), ...gap };
}

export const toFrames = (paths: readonly string[]): Frame[] =>
  paths.map((path, index) => ({ index, path }));

function toPattern({ pattern = '', first, last, step }: Payload<'video'>): Pattern {
  return { pattern, first, last, step };
}

/** Reads what a patternScript() prints. */
export async function readNames(stdout: Readable, signal?: AbortSignal): Promise<string[]> {
  const reader = new ByteReader(stdout, signal);
  const names: string[] = [];
  let bytes = 0;
  try {
    await reader.readUntil(Buffer.from(`\n${STREAM_MAGIC}\n`), 2 ** 20);
    for (;;) {
      const name = await reader.readUntil(Buffer.from([0]), MAX_PATH_BYTES);
      if (name.bytes.length === 0 && name.isWhole) return names;
      bytes += name.bytes.length;
      if (names.length === MAX_LISTED || bytes > MAX_LISTED_BYTES) throw tooMany();
      names.push(decodePath(name.bytes));
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof WindlassError) throw error;
    throw new WindlassError('remote_connection_failed', {
      detail: 'The connection was lost while the frames were listed.',
      hint: 'Try again.',
      cause: error,
    });
  } finally {
    reader.close();
  }
}

const tooMany = () =>
  new WindlassError('bad_frames', {
    detail: `the pattern matches too many files: at most ${MAX_LISTED}, whose paths have ${MAX_LISTED_BYTES} bytes.`,
    hint: 'Give a narrower pattern.',
  });
