import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { z } from 'zod';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { absolutePath } from '../../shared/jobs/payloads/absolute-path.ts';
import type { ApiContext } from '../context.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { SESSION_JOB_ERRORS } from '../jobs/requests/start-requested-job.ts';
import { followOutput, readStdout, splitLines } from '../jobs/streaming/follow-output.ts';
import { operation } from '../openapi/operation.ts';
import { type HostReading, readFromHost } from '../remote/read-from-host.ts';
import { remotePath } from '../remote/remote-path.ts';

/** Entries of a directory, by column. */
const listing = z
  .object({
    path: absolutePath,
    names: z.array(z.string()),
    sizes: z.array(z.number()),
    types: z.array(z.enum(['f', 'd'])),
    mtimes: z.array(z.iso.datetime()),
  })
  .meta({ id: 'DirectoryListing' });
/** Clients of Slycat send filters, which are passed over. */
const listingRequest = z.looseObject({ name: jobName }).meta({ id: 'ListingRequest' });
/** In the order of their lines in the job's output. */
const COLUMNS = ['names', 'sizes', 'types', 'mtimes'] as const;

/** Lists a directory on the host. */
export default routes('json-body', (router, api) => {
  resource(router, '/remotes/:sid/browse{/*path}', {
    post: operation({
      id: 'listDirectory',
      topic: 'files',
      summary: 'List a directory on the host',
      details:
        'In the order the host has them, streamed; `types` are `d` for directories, `f` for the rest.',
      body: listingRequest,
      isBodyOptional: true,
      answers: { 200: { means: 'The entries, as arrays side by side.', json: listing } },
      errors: [
        ...SESSION_JOB_ERRORS,
        'invalid_input',
        'not_found',
        'forbidden',
        'sftp_unavailable',
        'time_limit',
        'output_limit',
      ],
      handle: async ({ req, res, body }) => {
        const { name } = body();
        const path = remotePath(req, 'browse');
        const request = { kind: 'browse' as const, payload: { path }, name };
        await readFromHost(api, { req, res }, request, reading =>
          sendListing(api, res, { path, ...reading }),
        );
      },
    }),
  });
});

interface Listing extends HostReading {
  path: string;
}

/**
 * Streams the names while the host lists them, then the other columns from the stored output: a directory of any size
 * takes the memory of one batch (decision 16). An error before the first entry is an error response.
 */
async function sendListing(api: ApiContext, res: Response, listing: Listing): Promise<void> {
  const text = writeListing(api, listing);
  const first = await text.next();
  await listing.identify(text);
  res.type('application/json').set('Cache-Control', 'no-store');
  await pipeline(async function* () {
    yield first.value;
    yield* text;
  }, res);
}

async function* writeListing(
  api: ApiContext,
  { job, path, signal }: Listing,
): AsyncGenerator<string, string> {
  let until = 0;
  const live = async function* () {
    for await (const bytes of followOutput(api, job, signal)) {
      until += bytes.length;
      yield bytes;
    }
  };
  let before = `{"path":${JSON.stringify(path)},`;
  for (const [index, column] of COLUMNS.entries()) {
    const bytes = index === 0 ? live() : readAgain(api, job, until, signal);
    let line = 0;
    before += `"${column}":[`;
    for await (const lines of splitLines(bytes)) {
      // Each line is a JSON array: what is between its brackets continues the column.
      const parts = lines.filter(() => line++ % COLUMNS.length === index);
      const values = parts
        .map(part => part.slice(1, -1))
        .filter(Boolean)
        .join(',');
      if (values === '') continue;
      yield before + values;
      before = ',';
    }
    before = before === ',' ? '],' : `${before}],`;
  }
  yield `${before.slice(0, -1)}}`;
  return '';
}

/** The stored output again. Throws where some of it is missing: the response must not look complete. */
async function* readAgain(
  api: ApiContext,
  job: JobSummary,
  until: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const bytes of readStdout(api, job.id, { from: 0, until, signal })) {
    read += bytes.length;
    yield bytes;
  }
  if (read !== until) throw new Error(`of ${until} bytes ${read} are still stored`);
}
