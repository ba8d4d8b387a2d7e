import { and, count, eq, isNull, max, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, parts, uploads } from '../../shared/database/schema.ts';
import { ERRORS, WindlassError } from '../../shared/errors.ts';
import { newId } from '../../shared/ids.ts';
import { assertUploadOpen, lockUpload, MAX_FILES } from '../../shared/uploads.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { type RequestedJob, startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { sendProblem } from '../middleware/errors.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';
import { problem } from '../openapi/problem.ts';
import { bumpModel, lockModel } from '../projects/access.ts';
import { type Comparison, compareParts, MAX_LISTED } from '../uploads/compare-parts.ts';
import { findUpload, readUploadKey, type UploadKey } from '../uploads/find-upload.ts';
import { readParts } from '../uploads/upload-record.ts';

const finished = z.strictObject({
  uploaded: z
    .array(z.number().int().positive())
    .min(1, 'must name at least one file')
    .max(MAX_FILES)
    .meta({ description: 'The number of parts of each file.' }),
  name: jobName,
});
const tuples = z.array(z.array(z.number().int()).length(2)).describe('[fid, pid] of each part.');
const miscount = problem.extend({
  missing: tuples.optional(),
  excess: tuples.optional(),
  truncated: z.literal(true).optional(),
});

/** POST …/finished: closes an upload and starts its parse. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  resource(router, '/uploads/:uid/finished', {
    post: operation({
      summary: 'Say that all parts were sent, so that parsing begins',
      details: `Where the counts differ from what has arrived: 400 with \`missing\` and \`excess\`, lists of [fid, pid] of at most ${MAX_LISTED} entries each (\`truncated\` where there are more). Parsing does not begin then.`,
      body: finished,
      headers: ['Idempotency-Key'],
      answers: {
        202: answerWithLocation(
          'All is there: parsing begins.',
          'The job.',
          z.object({ missing: tuples, job: z.string() }),
        ),
        400: { means: 'The counts differ, or the body is not valid.', json: miscount },
      },
      errors: [
        'upload_incomplete',
        'client_confused',
        'forbidden',
        'not_found',
        'conflict',
        'idempotency_conflict',
        'locked',
      ],
      handle: async ({ req, res, body }) => {
        const key = readUploadKey(req, res);
        await findUpload(db, key);
        const { uploaded, name } = body();
        try {
          const job = await startRequestedJob(api, req, res, async tx => ({
            ...(await accept(tx, key, uploaded)),
            name,
          }));
          res.status(202).location(`/api/jobs/${job.id}`).json({ missing: [], job: job.id });
        } catch (error) {
          if (!isMiscount(error)) throw error;
          // The interface wants the title as reason phrase, and application/json.
          res.statusMessage = ERRORS[error.code].title;
          sendProblem(res, error, 'application/json');
        }
      },
    }),
  });
});

/** Closes the upload in the transaction that starts its job. */
async function accept(
  tx: Tx,
  { uid, owner }: UploadKey,
  uploaded: number[],
): Promise<RequestedJob> {
  const before = await findUpload(tx, { uid, owner });
  const { model, project } = await lockModel(tx, before.upload.model, {
    username: owner,
    role: 'writer',
  });
  const found = await lockUpload(tx, uid);
  assertUploadOpen(found);
  await assertNoCopies(tx, uid);
  if (!(await hasCounts(tx, uid, uploaded)))
    assertCounts(compareParts(uploaded, await readParts(tx, uid)));
  const job = newId();
  await tx
    .update(uploads)
    .set({ job, version: sql`${uploads.version} + 1`, accessed: sql`now()` })
    .where(eq(uploads.uid, uid));
  await bumpModel(tx, model.mid);
  return {
    id: job,
    kind: 'parse',
    label: `${before.upload.parser}: ${before.upload.aids.join(', ')}`,
    payload: { upload: uid },
    project: project.pid,
    model: model.mid,
    upload: uid,
  };
}

/** Whether each file has as many parts as stated, numbered from 0 on: counted by the database, without reading them. */
async function hasCounts(tx: Tx, uid: string, uploaded: number[]): Promise<boolean> {
  const stored = await tx
    .select({ file: parts.file, n: count(), last: max(parts.part) })
    .from(parts)
    .where(eq(parts.upload, uid))
    .groupBy(parts.file);
  return (
    stored.length === uploaded.length &&
    stored.every(({ file, n, last }) => n === uploaded[file] && last === n - 1)
  );
}

async function assertNoCopies(tx: Tx, uid: string): Promise<void> {
  const [copy] = await tx
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.upload, uid), isNull(jobs.finished)))
    .limit(1);
  if (!copy) return;
  throw new WindlassError('locked', {
    detail: `Locked: a part is still being copied, by job ${copy.id}.`,
    hint: `Wait for GET /api/jobs/${copy.id} to end, then send this again.`,
    headers: { 'Retry-After': '2' },
  });
}

function assertCounts({ missing, excess, truncated }: Comparison): void {
  const cut = truncated ? { truncated } : {};
  if (missing.length > 0) {
    throw new WindlassError('upload_incomplete', {
      detail: `Upload incomplete: ${countParts(missing.length, truncated)} not received.`,
      hint: 'Send the parts that "missing" lists as [fid, pid], then this again.',
      extra: { missing, ...(excess.length > 0 ? { excess } : {}), ...cut },
    });
  }
  if (excess.length === 0) return;
  throw new WindlassError('client_confused', {
    detail: `Client confused: ${countParts(excess.length, truncated)} received beyond what "uploaded" states.`,
    hint: 'Send this again with the numbers of parts that were sent; "excess" lists the others as [fid, pid].',
    extra: { excess, ...cut },
  });
}

const countParts = (n: number, truncated: boolean) =>
  `${truncated ? 'more than ' : ''}${n === 1 ? '1 part was' : `${n} parts were`}`;

function isMiscount(error: unknown): error is WindlassError {
  return (
    error instanceof WindlassError &&
    (error.code === 'upload_incomplete' || error.code === 'client_confused')
  );
}
