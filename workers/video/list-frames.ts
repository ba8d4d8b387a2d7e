import type { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Payload } from '../../shared/jobs/catalog.ts';
import type { JobContext } from '../context.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { withSession } from '../ssh/reconnect.ts';
import { decodePath } from './frame-path.ts';
import { expandPattern, type Pattern, patternScript } from './frame-pattern.ts';
import { openFrameStream, STREAM_MAGIC } from './frame-stream.ts';
import type { Place } from './frame-validator.ts';

/** Of all names that a pattern matches: a million of them, or so. */
const MAX_LISTED_BYTES = 2 ** 28;
/** Of one path, as the host's system has it. */
const MAX_PATH_BYTES = 2 ** 16;

/** The frames of a video: those that were given, or those that the pattern matches on the host. */
export async function listFrames(context: JobContext<'video'>): Promise<Place[]> {
  const { payload, signal } = context;
  const paths =
    payload.images ??
    (await withSession(context, async session => {
      const pattern = toPattern(payload);
      const stdout = await openFrameStream(session, patternScript(pattern), signal);
      return expandPattern(pattern, await readNames(stdout, signal));
    }));
  return toPlaces(paths);
}

export const toPlaces = (paths: readonly string[]): Place[] =>
  paths.map((path, index) => ({ index, path }));

function toPattern({ pattern = '', first, last, step }: Payload<'video'>): Pattern {
  return { pattern, first, last, step };
}

/** Reads what a patternScript() prints. */
async function readNames(stdout: Readable, signal?: AbortSignal): Promise<string[]> {
  const reader = new ByteReader(stdout, signal);
  const names: string[] = [];
  let bytes = 0;
  try {
    await reader.readUntil(Buffer.from(`\n${STREAM_MAGIC}\n`), 2 ** 20);
    for (;;) {
      const name = await reader.readUntil(Buffer.from([0]), MAX_PATH_BYTES);
      if (name.bytes.length === 0 && name.isWhole) return names;
      bytes += name.bytes.length;
      if (bytes > MAX_LISTED_BYTES) throw tooMany();
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
    detail: 'the pattern matches too many files.',
    hint: 'Give a narrower pattern.',
  });
