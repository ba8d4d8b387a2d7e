import { z } from 'zod';
import { WindlassError } from '../../shared/errors/errors.ts';
import { jobRecord, toJobRecord } from '../../shared/jobs/job-record.ts';
import { batchPayload, batchRules } from '../../shared/jobs/payloads/batch.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { unlessRepeated } from '../jobs/requests/repeats-earlier-request.ts';
import { SESSION_JOB_ERRORS, startSessionJob } from '../jobs/requests/start-requested-job.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';
import { findSession, sessionKey } from '../remote/sessions.ts';

const newBatch = z
  .strictObject({ ...batchPayload.shape, ...batchRules, name: jobName })
  .refine(given => (given.command === undefined) !== (given.script === undefined), {
    path: ['command'],
    message: 'give either command or script',
  })
  .meta({ id: 'NewBatchJob' });

/** POST /remotes/(sid)/batch: a job of the host's batch system, Slurm for instance. */
export default routes('json-body', (router, api) => {
  resource(router, '/remotes/:sid/batch', {
    post: operation({
      id: 'submitBatchJob',
      topic: 'commands',
      summary: "Submit a job to the batch system of a session's host",
      details:
        'It is submitted once, whatever fails meanwhile. The record is `queued` while the job waits there, and its `batch` holds what the batch system says; both streams can be followed while it runs.',
      body: newBatch,
      headers: ['Idempotency-Key'],
      answers: { 202: answerWithLocation('The job is started.', 'The job.', jobRecord) },
      errors: [...SESSION_JOB_ERRORS, 'batch_unavailable', 'idempotency_conflict'],
      handle: async ({ req, res, body }) => {
        const sid = pathParameter(req, 'sid');
        const payload = body();
        const key = sessionKey(api, res, sid);
        await unlessRepeated(api, { req, res }, async () => {
          const { engines, hostname } = await findSession(api.database.db, key);
          if (engines?.length === 0) throw noEngine(hostname);
        });
        const request = { kind: 'batch' as const, payload, session: sid, name: payload.name };
        const job = await startSessionJob(api, { req, res }, request);
        res.location(`/api/jobs/${job.id}`).status(202).json(toJobRecord(job));
      },
    }),
  });
});

const noEngine = (hostname: string) =>
  new WindlassError('batch_unavailable', {
    detail: `${hostname} has no batch system that is known here: the account finds no sbatch there.`,
    hint: "Run a command instead, or have the account's start-up files put sbatch on PATH and open a new session.",
  });
