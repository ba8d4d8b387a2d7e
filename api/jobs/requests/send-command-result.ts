import { StringDecoder } from 'node:string_decoder';
import { eq, sql } from 'drizzle-orm';
import type { Response } from 'express';
import { jobs } from '../../../shared/database/schema.ts';
import { notFound } from '../../../shared/errors/errors.ts';
import type { Result } from '../../../shared/jobs/catalog.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { OutputStream } from '../../../shared/jobs/output.ts';
import { readOutputStream } from '../../../shared/jobs/read-output.ts';
import { waitForDrain } from '../../../shared/process/wait-for-drain.ts';
import type { ApiContext } from '../../context.ts';
import { SMALL_BYTES } from '../streaming/output-reader.ts';

/** The most bytes of each stream in the answer to a launch; GET /jobs/(id)/output has all of them. */
const ANSWERED = 10 << 20;
/** Bytes of one write: in JSON they may be six times as many. */
const SLICE = 64 << 10;

/**
 * Answers a launch with its command, which is read if not given, and that command's output. All of it is read before
 * the head is sent, so that an unavailable store is still an error of its own. It is encoded slice by slice, as the
 * client reads.
 */
export async function sendCommandResult(
  api: ApiContext,
  res: Response,
  { job, command }: { job: JobSummary; command: string | undefined },
): Promise<void> {
  const held = Math.min(job.stdoutBytes, ANSWERED) + Math.min(job.stderrBytes, ANSWERED);
  await api.requestMemory.reserveIfLarge(res, held);
  const [text, output, errors] = await Promise.all([
    command ?? readCommand(api, job),
    readPieces(api, job, 'stdout'),
    readPieces(api, job, 'stderr'),
  ]);
  const { returncode } = job.result as Result<'command'>;
  const rest = {
    returncode,
    job: job.id,
    ...(output.isCut || errors.isCut ? { truncated: true } : {}),
  };
  const json = encodeResult(text, { output, errors }, rest);
  res.type('json');
  if (held <= SMALL_BYTES) return void res.send([...json].join(''));
  for (const text of json) if (!res.write(text) && !(await waitForDrain(res))) return;
  res.end();
}

async function readCommand({ database }: ApiContext, { id }: JobSummary): Promise<string> {
  const command = sql<string>`${jobs.payload} ->> 'command'`;
  const [row] = await database.db.select({ command }).from(jobs).where(eq(jobs.id, id));
  if (!row) throw removedJustNow();
  return row.command;
}

interface Text {
  pieces: Buffer[];
  /** Whether more follows, so that the last character may be cut. */
  isCut: boolean;
}

/** A stream's bytes, up to the limit. */
async function readPieces(
  { database, objects }: ApiContext,
  job: JobSummary,
  stream: OutputStream,
): Promise<Text> {
  const total = stream === 'stdout' ? job.stdoutBytes : job.stderrBytes;
  const pieces: Buffer[] = [];
  const span = { stream, from: 0, until: Math.min(total, ANSWERED) };
  const text = { pieces, isCut: total > ANSWERED };
  let left = span.until;
  if (left === 0) return text;
  for await (const piece of readOutputStream({ db: database.db, objects }, job.id, span)) {
    pieces.push(piece.subarray(0, left));
    left -= piece.length;
    if (left <= 0) break;
  }
  if (left > 0) throw removedJustNow();
  return text;
}

const removedJustNow = () =>
  notFound(
    "the job's record was removed just now, with its output.",
    'The command has run; its output cannot be had any more.',
  );

/** Invalid UTF-8 is replaced by U+FFFD; a character that the limit cuts is left out. */
function* encodeResult(
  command: string,
  { output, errors }: { output: Text; errors: Text },
  rest: object,
): Generator<string> {
  yield `{"command":${JSON.stringify(command)},"output":"`;
  yield* encodeText(output);
  yield '","errors":"';
  yield* encodeText(errors);
  yield `",${JSON.stringify(rest).slice(1)}`;
}

function* encodeText({ pieces, isCut }: Text): Generator<string> {
  const decoder = new StringDecoder('utf8');
  for (const piece of pieces)
    for (let at = 0; at < piece.length; at += SLICE)
      yield escapeText(decoder.write(piece.subarray(at, at + SLICE)));
  if (!isCut) yield escapeText(decoder.end());
}

const escapeText = (text: string) => JSON.stringify(text).slice(1, -1);
