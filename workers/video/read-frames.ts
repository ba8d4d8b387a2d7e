import type { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { MAX_FRAME_BYTES, STREAM_MAGIC } from './transfer.ts';

export interface Frame {
  index: number;
  path: string;
  size: number;
  bytes: Buffer;
}

export interface FrameFailure {
  index: number;
  path: string;
  /** What is wrong, as the end of a sentence that begins with the path. */
  problem: string;
}

export interface ReadFramesOptions {
  /** The paths that the script was made for, in its order. */
  images: readonly string[];
  /** Bytes that one frame may have; a larger one is a problem and is not kept in memory. */
  limit?: number;
  /** Ends the wait for more and destroys the stream. */
  signal?: AbortSignal;
}

const PROBLEMS: Record<string, string> = {
  missing: 'is missing',
  directory: 'is a directory',
  special: 'is not a regular file',
  unreadable: 'cannot be read',
};

/** Start-up files may print before the stream begins; more than this is no stream of ours. */
const NOISE_LIMIT = 1 << 20;
/** The longest line between frames. */
const LINE_LIMIT = 4096;

/**
 * The frames that transferScript() sends, in order. One frame is in memory at a time and nothing more
 * is read until the next is asked for; leaving the loop destroys the stream. Throws WindlassError
 * `remote_connection_failed` when the stream ends before the last frame.
 */
export async function* readFrames(
  stdout: Readable,
  { images, limit = MAX_FRAME_BYTES, signal }: ReadFramesOptions,
): AsyncGenerator<Frame | FrameFailure> {
  const reader = new ByteReader(stdout, signal);
  try {
    const mark = await readMark(reader);
    for (const [index, path] of images.entries()) {
      const [word, position, reason = ''] = await readMarkedLine(reader, mark);
      if (Number(position) !== index) throw outOfStep();
      if (word === 'problem') {
        yield { index, path, problem: PROBLEMS[reason] ?? 'cannot be read' };
        continue;
      }
      if (word !== 'frame') throw outOfStep();
      const { bytes, isWhole } = await reader.readUntil(
        Buffer.from(`\n${mark} end ${index} `),
        limit,
      );
      const status = (await reader.readUntil(NEWLINE, LINE_LIMIT)).bytes.toString('latin1');
      if (!isWhole) yield { index, path, problem: `is larger than ${limit} bytes` };
      else if (status !== '0') yield { index, path, problem: 'cannot be read' };
      else yield { index, path, size: bytes.length, bytes };
    }
    const [word, count] = await readMarkedLine(reader, mark);
    if (word !== 'done' || Number(count) !== images.length) throw outOfStep();
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof WindlassError ? error : lost(error);
  } finally {
    reader.close();
  }
}

const NEWLINE = Buffer.from('\n');

async function readMark(reader: ByteReader): Promise<string> {
  const { isWhole } = await reader.readUntil(Buffer.from(`\n${STREAM_MAGIC} `), NOISE_LIMIT);
  const mark = (await reader.readUntil(NEWLINE, LINE_LIMIT)).bytes.toString('latin1');
  if (!isWhole || !/^[0-9a-f]{32}$/.test(mark)) throw outOfStep();
  return mark;
}

async function readMarkedLine(reader: ByteReader, mark: string): Promise<string[]> {
  const line = (await reader.readUntil(NEWLINE, LINE_LIMIT)).bytes.toString('latin1');
  const [first, ...words] = line.split(' ');
  if (first !== mark) throw outOfStep();
  return words;
}

function outOfStep(): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The host did not send the frames as it was asked to.',
    hint: "Look whether the account's start-up files print or change how /bin/sh works.",
  });
}

function lost(cause: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The connection was lost while frames were read.',
    hint: 'Try again.',
    cause,
  });
}
