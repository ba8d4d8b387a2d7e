import type { Request, Response } from 'express';
import { z } from 'zod';
import { isDatabaseDown } from '../../shared/database/connect.ts';
import { commandText, type Result } from '../../shared/jobs/catalog.ts';
import { readStream, type Stream } from '../../shared/jobs/output.ts';
import type { ApiContext } from '../context.ts';
import { operation } from '../describe/operation.ts';
import { type DescribedRouter, resource } from '../http/resource.ts';
import type { JobSummary } from '../jobs/job-summary.ts';
import { jobRecord, jobView } from '../jobs/job-view.ts';
import {
  errorOfJob,
  readPreference,
  startSessionJob,
  untilNoLongerWaiting,
} from '../jobs/run-request.ts';

/** Bytes of each stream that a launch answers with; the whole is at the job's output. */
const ANSWERED = 10 << 20;

const launch = z.strictObject({ sid: z.string(), command: commandText });
const commandResult = z.object({
  command: z.string(),
  output: z.string(),
  errors: z.string(),
  returncode: z.number().int(),
  job: z.string(),
  truncated: z.literal(true).optional(),
});

/** POST /remotes/launch: a command through an existing session, waited for unless the client prefers otherwise. */
export function routeLaunch(router: DescribedRouter, api: ApiContext): void {
  resource(router, '/remotes/launch', {
    post: operation({
      summary: 'Run a command on the host of a session',
      details:
        'Answers when the command has ended, whatever its exit status; `output` and `errors` hold up to 10 MiB each, the whole is at the job.',
      body: launch,
      headers: ['Prefer', 'Idempotency-Key'],
      answers: {
        200: {
          means: 'The command has ended.',
          json: commandResult,
          headers: { Location: 'The job.' },
        },
        202: {
          means: 'It goes on as a job.',
          json: jobRecord,
          headers: {
            Location: 'The job.',
            'Preference-Applied': 'The preference that was followed.',
          },
        },
      },
      errors: [
        'session_not_found',
        'agent_problem',
        'output_limit',
        'time_limit',
        'remote_disk_full',
        'wrong_node',
        'cancelled',
        'idempotency_conflict',
        'host_key_changed',
        'remote_authentication_failed',
        'host_not_allowed',
        'remote_connection_failed',
        'startup_files_print',
        'agent_startup_failed',
        'outcome_unknown',
        'worker_lost',
      ],
      handle: async ({ req, res, body }) => {
        const { sid, command } = body();
        const request = { kind: 'command' as const, payload: { command }, session: sid };
        const job = await startSessionJob(api, { req, res }, request);
        res.location(`/api/jobs/${job.id}`);
        await answer(api, { req, res, job, command }).catch((error: unknown) => {
          // The job is committed and will run: "try again" would run it twice.
          if (!isDatabaseDown(error) || res.headersSent) throw error;
          res.status(202).json(jobView(job));
        });
      },
    }),
  });
}

async function answer(
  api: ApiContext,
  { req, res, job, command }: { req: Request; res: Response; job: JobSummary; command: string },
): Promise<void> {
  const { respondAsync, wait } = readPreference(req);
  if (respondAsync) res.set('Preference-Applied', 'respond-async');
  else if (wait !== undefined) res.set('Preference-Applied', `wait=${wait}`);
  const ended = respondAsync ? job : await waitForEnd(api, res, job, wait);
  if (!ended.finished) return void res.status(202).json(jobView(ended));
  if (ended.state !== 'succeeded') throw errorOfJob(ended);
  const [stdout, stderr] = await Promise.all([
    readText(api, ended, 'stdout'),
    readText(api, ended, 'stderr'),
  ]);
  res.json({
    command,
    output: stdout.text,
    errors: stderr.text,
    returncode: (ended.result as Result<'command'>).returncode,
    job: ended.id,
    ...(stdout.truncated || stderr.truncated ? { truncated: true } : {}),
  });
}

/** A client that leaves cancels nothing; a process that stops answers 202 at once. */
function waitForEnd(
  api: ApiContext,
  res: Response,
  job: JobSummary,
  wait: number | undefined,
): Promise<JobSummary> {
  if (wait === 0) return Promise.resolve(job);
  const max = api.config.LAUNCH_MAX_WAIT;
  const seconds = wait === undefined ? max : max > 0 ? Math.min(wait, max) : wait;
  return api.jobs.ended(job, untilNoLongerWaiting(api, res, seconds).signal);
}

/** A stream as UTF-8, invalid bytes replaced, up to the limit. */
async function readText(
  { database, objects }: ApiContext,
  job: JobSummary,
  stream: Stream,
): Promise<{ text: string; truncated: boolean }> {
  const total = stream === 'stdout' ? job.stdoutBytes : job.stderrBytes;
  const bytes: Buffer[] = [];
  let length = 0;
  if (total > 0) {
    for await (const piece of readStream({ db: database.db, objects }, job.id, {
      stream,
      from: 0,
      until: Math.min(total, ANSWERED),
    })) {
      bytes.push(piece);
      length += piece.length;
      if (length >= ANSWERED) break;
    }
  }
  return {
    text: Buffer.concat(bytes).subarray(0, ANSWERED).toString('utf8'),
    truncated: total > ANSWERED,
  };
}
