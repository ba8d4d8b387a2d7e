import type { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { MAX_FRAME_BYTES, STREAM_MAGIC } from './frame-stream.ts';
import type { Frame } from './frame-validator.ts';

export interface ReadFrame extends Frame {
  size: number;
  bytes: Buffer;
}

export interface FrameFailure extends Frame {
  /** The predicate of a sentence that begins with the path. */
  problem: string;
}

interface ReadFramesOptions {
  /** Those of the script, in its order. */
  frames: readonly Frame[];
  /** The most bytes of a frame; a larger one is a problem, and is not kept in memory. */
  limit?: number;
  /** Ends the iteration and destroys the stream. */
  signal?: AbortSignal;
}

/** What the words of the scripts say of a file. */
export const PROBLEMS: Record<string, string> = {
  missing: 'is missing',
  directory: 'is a directory',
  special: 'is not a regular file',
  unreadable: 'cannot be read',
};

/** Limit of bytes that start-up files may print before the stream. */
const MAX_PRINTED_BYTES = 1 << 20;
/** Limit of bytes of a line between frames. */
const MAX_LINE_BYTES = 4096;

/**
 * Reads the frames of a frameStreamScript() in order, one at a time, without reading ahead; leaving the loop destroys
 * the stream. Throws WindlassError `remote_connection_failed` if the stream ends early.
 */
export async function* readFrames(
  stdout: Readable,
  { frames, limit = MAX_FRAME_BYTES, signal }: ReadFramesOptions,
): AsyncGenerator<ReadFrame | FrameFailure> {
  const reader = new ByteReader(stdout, signal);
  try {
    const mark = await readMark(reader);
    for (const [at, { index, path }] of frames.entries()) {
      const [word, position, reason = ''] = await readMarkedLine(reader, mark);
      if (Number(position) !== at) throw malformedStream();
      if (word === 'problem') {
        yield { index, path, problem: PROBLEMS[reason] ?? 'cannot be read' };
        continue;
      }
      if (word !== 'frame') throw malformedStream();
      const end = Buffer.from(`\n${mark} end ${at} `);
      const { bytes, isWhole } = await reader.readUntil(end, limit);
      const status = await readLine(reader);
      if (!isWhole) yield { index, path, problem: `is larger than ${limit} bytes` };
      else if (status !== '0') yield { index, path, problem: 'cannot be read' };
      else yield { index, path, size: bytes.length, bytes };
    }
    const [word, count] = await readMarkedLine(reader, mark);
    if (word !== 'done' || Number(count) !== frames.length) throw malformedStream();
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof WindlassError) throw error;
    throw new WindlassError('remote_connection_failed', {
      detail: 'The connection was lost while the frames were read.',
      hint: 'Try again.',
      cause: error,
    });
  } finally {
    reader.close();
  }
}

async function readLine(reader: ByteReader): Promise<string> {
  return (await reader.readUntil(Buffer.from('\n'), MAX_LINE_BYTES)).bytes.toString('latin1');
}

async function readMark(reader: ByteReader): Promise<string> {
  const { isWhole } = await reader.readUntil(Buffer.from(`\n${STREAM_MAGIC} `), MAX_PRINTED_BYTES);
  const mark = await readLine(reader);
  if (!isWhole || !/^[0-9a-f]{32}$/.test(mark)) throw malformedStream();
  return mark;
}

async function readMarkedLine(reader: ByteReader, mark: string): Promise<string[]> {
  const [first, ...words] = (await readLine(reader)).split(' ');
  if (first !== mark) throw malformedStream();
  return words;
}

function malformedStream(): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The host sent a malformed stream of frames.',
    hint: "Check whether the account's start-up files print or change how /bin/sh works.",
  });
}
