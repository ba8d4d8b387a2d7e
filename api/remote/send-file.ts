import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';
import { checkIfMatch, matchesEntityTag } from '../http/conditional-requests.ts';
import { contentPolicy } from '../http/content-policy.ts';
import type { Exchange } from '../http/exchange.ts';
import { giveUp } from '../jobs/requests/await-job.ts';
import { followOutput } from '../jobs/streaming/follow-output.ts';
import type { HostReading } from './read-from-host.ts';

/** The first line of the job's output; `end` is the offset after the last byte that follows. */
interface FileHead {
  size: number;
  start: number;
  end: number;
  /** The tag of the file's state, where its host tells one. */
  tag?: string;
  /** All of the file. */
  whole: boolean;
}

type Sending = HostReading & Exchange;

/** Sends the file that a job of kind `file` streams, or the range of it. */
export async function sendFile(
  api: ApiContext,
  { req, res, job, signal, identify }: Sending,
): Promise<void> {
  const output = followOutput(api, job, signal);
  const { head, rest } = await readHead(output, res);
  await identify(output);
  res
    .set('Accept-Ranges', 'bytes')
    .set('Cache-Control', 'no-store')
    .set('Content-Security-Policy', contentPolicy('sandbox'))
    .type('application/octet-stream');
  // Without a tag only `*` matches.
  const tag = `"${head.tag ?? ''}"`;
  if (head.tag !== undefined) res.set('ETag', tag);
  // Throws before anything is sent, which cancels the job.
  checkIfMatch(req, tag);
  if (matchesEntityTag(req.get('If-None-Match'), tag)) {
    res.status(304).end();
    await output.return(undefined);
    return giveUp(api, job);
  }
  if (req.method === 'HEAD') {
    await output.return(undefined);
    return void res.set('Content-Length', String(head.size)).end();
  }
  if (!head.whole)
    res.status(206).set('Content-Range', `bytes ${head.start}-${head.end - 1}/${head.size}`);
  const length = head.end - head.start;
  res.set('Content-Length', String(length));
  await pipeline(async function* () {
    let sent = rest.length;
    yield rest;
    for await (const bytes of output) {
      sent += bytes.length;
      yield bytes;
    }
    // The file was truncated while it was read: the response must not look complete.
    if (sent !== length) throw new Error(`of ${length} bytes ${sent} came`);
  }, res);
}

/** An error before the first line is an error response. */
async function readHead(
  output: AsyncGenerator<Buffer>,
  res: Response,
): Promise<{ head: FileHead; rest: Buffer }> {
  let seen: Buffer = Buffer.alloc(0);
  try {
    for (;;) {
      const { value, done } = await output.next();
      if (done) throw new Error('the output ended before it began');
      seen = seen.length === 0 ? value : Buffer.concat([seen, value]);
      const end = seen.indexOf(0x0a);
      if (end < 0) continue;
      return {
        head: JSON.parse(seen.toString('utf8', 0, end)) as FileHead,
        rest: seen.subarray(end + 1),
      };
    }
  } catch (error) {
    if (error instanceof WindlassError && error.code === 'range_not_satisfiable')
      res.set('Content-Range', `bytes */${error.extra.size}`);
    throw error;
  }
}
