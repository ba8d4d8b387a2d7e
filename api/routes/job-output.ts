import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { OUTPUT_STREAMS } from '../../shared/jobs/output.ts';
import { readOutputTimes } from '../../shared/jobs/output-times.ts';
import { ResponseQuota } from '../concurrency/response-quota.ts';
import { optionalQueryInteger, queryInteger } from '../http/query-integer.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser, shareOf } from '../identity/current-user.ts';
import { identifyAgain, isIdentityCurrent } from '../identity/identify-sender.ts';
import { findOwnJob } from '../jobs/queries/find-job.ts';
import { JobFeeds } from '../jobs/streaming/job-feeds.ts';
import { OutputReader } from '../jobs/streaming/output-reader.ts';
import { sendOutput } from '../jobs/streaming/send-output.ts';
import { streamJobEvents } from '../jobs/streaming/stream-job-events.ts';
import { operation } from '../openapi/operation.ts';

const MAX_OFFSET = Number.MAX_SAFE_INTEGER;
const outputStream = z.enum(OUTPUT_STREAMS).default('stdout');
const outputTime = z
  .object({ offset: z.number().int().min(0), time: z.iso.datetime() })
  .meta({ id: 'JobOutputTime' });
const outputQuery = z.strictObject({
  stream: outputStream,
  offset: queryInteger({ min: -MAX_OFFSET, max: MAX_OFFSET, default: 0 }).describe(
    'Of the first byte; a negative one counts from the end of what is stored.',
  ),
  limit: optionalQueryInteger({ min: 1, max: MAX_OFFSET }).describe('Bytes at most; else all.'),
});

/** The output of jobs, as events and as bytes. Only its owner sees a job. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const reads = new OutputReader({ db, objects: api.objects });
  const feeds = new JobFeeds(api, reads);
  const open = new ResponseQuota('stream', api.config.LIMIT_STREAMS);

  resource(router, '/jobs/:id/events', {
    get: operation({
      id: 'followJob',
      topic: 'jobs',
      summary: 'Follow a job: its state, progress and output as they come',
      details:
        'Server-sent events, each a `JobEvent`: `state` {state, error?}, the present one first unless the job has ended; `progress` {progress, message?}; `output` {stream, offset, time, text | base64}. After all output come the end state and `end`; the id of `end`, sent as Last-Event-ID, is answered 204, which stops an EventSource.',
      headers: ['Last-Event-ID'],
      answers: {
        200: { means: 'The stream of events.', types: ['text/event-stream'] },
        204: 'Last-Event-ID is that of `end`: there is no more.',
      },
      errors: ['invalid_input', 'not_found'],
      handle: async ({ req, res }) => {
        const find = () => findOwnJob(db, pathParameter(req, 'id'), currentUser(res));
        let row = await find();
        // A stream is ended with the credentials that opened it once it is there, and not before.
        while (!isIdentityCurrent(api, res)) {
          await identifyAgain(api, { req, res });
          row = await find();
        }
        open.add(shareOf(res), res);
        streamJobEvents(feeds, { req, res, row });
      },
    }),
  });

  resource(router, '/jobs/:id/output/times', {
    get: operation({
      id: 'fetchJobOutputTimes',
      topic: 'jobs',
      summary: 'See when the output of a command came',
      details:
        'Of each second in which output was stored: the time, and the offset of the first byte. What 0.1.0 stored is left out.',
      query: z.strictObject({ stream: outputStream }),
      answers: { 200: { means: 'Streamed, the oldest first.', json: z.array(outputTime) } },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const row = await findOwnJob(db, pathParameter(req, 'id'), currentUser(res));
        const { stream } = query();
        open.add(shareOf(res), res);
        res.type('application/json').set('Cache-Control', 'no-store');
        if (req.method === 'HEAD') return void res.end();
        const written = writeJsonArray(readOutputTimes(db, row.id, stream));
        await pipeline(written, res).catch((error: NodeJS.ErrnoException) => {
          // The client has gone.
          if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
        });
      },
    }),
  });

  resource(router, '/jobs/:id/output', {
    get: operation({
      id: 'fetchJobOutput',
      topic: 'jobs',
      summary: 'Fetch the output of a command, or a range of it',
      query: outputQuery,
      answers: {
        200: {
          means: 'The bytes stored so far, from the offset on.',
          types: ['application/octet-stream'],
          headers: {
            'Output-Complete': '`true` where no more will come after these bytes.',
            'Output-Offset': 'Of the first of these bytes.',
            'Output-Size': 'Bytes of the stream that are stored so far.',
          },
        },
      },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const row = await findOwnJob(db, pathParameter(req, 'id'), currentUser(res));
        const { stream, offset, limit = MAX_OFFSET } = query();
        open.add(shareOf(res), res);
        const size = stream === 'stdout' ? row.stdoutBytes : row.stderrBytes;
        const from = offset < 0 ? Math.max(0, size + offset) : offset;
        // Not `from + limit`, which may be no exact number.
        const until = limit < size - from ? from + limit : size;
        res
          .type('application/octet-stream')
          .set('Cache-Control', 'no-store')
          .set('X-Content-Type-Options', 'nosniff')
          .set('Output-Complete', String(row.finished !== null && until === size))
          .set('Output-Offset', String(from))
          .set('Output-Size', String(size))
          .set('Content-Length', String(Math.max(0, until - from)));
        if (req.method === 'HEAD' || from >= until) return void res.end();
        await sendOutput(reads, res, { job: row, stream, from, until });
      },
    }),
  });
});

async function* writeJsonArray(batches: AsyncIterable<unknown[]>): AsyncGenerator<string> {
  let separator = '[';
  for await (const items of batches) {
    yield separator + items.map(item => JSON.stringify(item)).join(',');
    separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}
