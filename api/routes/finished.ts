import { z } from 'zod';
import { ERRORS, WindlassError } from '../../shared/errors/errors.ts';
import { MAX_FILES, MAX_PARTS } from '../../shared/uploads/uploads.ts';
import { checkIfMatch } from '../http/conditional-requests.ts';
import { sendProblem } from '../http/problem.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';
import { problem } from '../openapi/problem.ts';
import { acceptUpload } from '../uploads/accept-upload.ts';
import { assertPartsAreSent } from '../uploads/begin-upload.ts';
import { MAX_LISTED } from '../uploads/compare-parts.ts';
import { findUpload, readUploadKey } from '../uploads/find-upload.ts';
import { tagOf } from '../uploads/upload-record.ts';

const finished = z
  .strictObject({
    uploaded: z
      .array(z.number().int().positive().meta({ maximum: MAX_PARTS }))
      .min(1, 'must name at least one file')
      .max(MAX_FILES)
      .meta({ description: 'The number of parts of each file.' }),
    name: jobName,
    useProjectData: z
      .literal(false)
      .optional()
      .meta({ description: 'What a page of Slycat says beside it: projects keep no files here.' }),
  })
  .meta({ id: 'UploadEnd' });
const tuples = z.array(z.array(z.number().int()).length(2)).describe('[fid, pid] of each part.');
const miscount = problem
  .extend({
    missing: tuples.optional(),
    excess: tuples.optional(),
    truncated: z.literal(true).optional(),
  })
  .meta({ id: 'PartsProblem' });

/** POST …/finished: closes an upload and starts its parse. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  resource(router, '/uploads/:uid/finished', {
    post: operation({
      id: 'finishUpload',
      topic: 'uploads',
      summary: 'Say that all parts were sent, so that parsing begins',
      details: `Where the counts differ from what has arrived: 400 with \`missing\` and \`excess\`, lists of [fid, pid] of at most ${MAX_LISTED} entries each (\`truncated\` where there are more). Parsing does not begin then. With the ETag of the upload as \`If-Match\` it begins only where no part has been stored since.`,
      body: finished,
      headers: ['Idempotency-Key', 'If-Match'],
      answers: {
        202: answerWithLocation(
          'All is there: parsing begins.',
          'The job.',
          z.object({ missing: tuples, job: z.string() }).meta({ id: 'AcceptedUpload' }),
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
        'precondition_failed',
      ],
      handle: async ({ req, res, body }) => {
        const key = readUploadKey({ req, res });
        assertPartsAreSent(await findUpload(db, key));
        const { uploaded, name } = body();
        try {
          const job = await startRequestedJob(api, { req, res }, async tx => ({
            ...(await acceptUpload(tx, key, uploaded, version =>
              checkIfMatch(req, tagOf(version, null)),
            )),
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

function isMiscount(error: unknown): error is WindlassError {
  return (
    error instanceof WindlassError &&
    (error.code === 'upload_incomplete' || error.code === 'client_confused')
  );
}
