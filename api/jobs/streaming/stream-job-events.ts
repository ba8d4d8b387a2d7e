import type { Request } from 'express';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { OutputOffsets } from '../../../shared/jobs/output.ts';
import type { Exchange } from '../../http/exchange.ts';
import { releaseRequestMemory } from '../../http/release-request-memory.ts';
import { invalidInput } from '../../http/validate.ts';
import { identityEnds } from '../../identity/current-user.ts';
import { EventStream } from './event-stream.ts';
import type { JobFeeds } from './job-feeds.ts';

/**
 * GET /jobs/(id)/events: server-sent events (WHATWG HTML, 9.2). First `state`, unless the job has ended; `output` from
 * Last-Event-ID on, `progress`, and each new `state`; after all output the end state and `end`. It ends with its link
 * or token. Returns at once, which frees the request's memory.
 */
export function streamJobEvents(
  feeds: JobFeeds,
  { req, res, row }: Exchange & { row: JobSummary },
): void {
  const { at, isEnd } = readLastEventId(req, row);
  // An EventSource reconnects after every end but this answer (WHATWG HTML, 9.2.3).
  if (isEnd) return void res.status(204).end();
  res
    .status(200)
    .type('text/event-stream')
    .set('Cache-Control', 'no-store')
    .set('X-Accel-Buffering', 'no');
  if (req.method === 'HEAD') return void res.end();
  // The client disconnected before anybody listened for `close`.
  if (res.destroyed) return;
  res.flushHeaders();
  releaseRequestMemory(req);
  const { id } = row;
  const stream = new EventStream(res, at, identityEnds(res));
  res.once('close', () => feeds.remove(stream, id));
  feeds.add(stream, row);
}

/** Throws `invalid_input` for an id of another job, as far as the offsets tell: who resumed there would miss events. */
function readLastEventId(
  req: Request,
  { stdoutBytes, stderrBytes, outputStreamed, finished }: JobSummary,
): { at: OutputOffsets; isEnd: boolean } {
  const given = req.get('Last-Event-ID');
  if (given === undefined || given === '') return { at: { stdout: 0, stderr: 0 }, isEnd: false };
  const [, stdout, stderr, end] = /^(\d{1,15})-(\d{1,15})(-end)?$/.exec(given) ?? [];
  const at = { stdout: Number(stdout), stderr: Number(stderr) };
  const isEnd = end !== undefined;
  // Streamed output of a finished job is removed after an hour, and its length with it: the id of its end stays valid.
  const isForgotten = outputStreamed && stdoutBytes === 0;
  const isOfJob = isEnd
    ? finished !== null && (isForgotten || at.stdout === stdoutBytes) && at.stderr === stderrBytes
    : at.stdout <= stdoutBytes && at.stderr <= stderrBytes;
  if (stdout === undefined || !isOfJob) {
    throw invalidInput(
      [{ field: 'Last-Event-ID', problem: 'must be the id of an event of this job' }],
      'Leave it out to begin at the start.',
    );
  }
  return { at, isEnd };
}
