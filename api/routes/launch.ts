import { z } from 'zod';
import { jobRecord, toJobRecord } from '../../shared/jobs/job-record.ts';
import { commandText, launchOptions } from '../../shared/jobs/payloads/launch.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { toWindlassError } from '../http/to-windlass-error.ts';
import { jobError } from '../jobs/records/job-error.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { awaitEnd } from '../jobs/requests/prefer.ts';
import { sendCommandResult } from '../jobs/requests/send-command-result.ts';
import { SESSION_JOB_ERRORS, startSessionJob } from '../jobs/requests/start-requested-job.ts';
import { answerWithLocation, type OperationInput, operation } from '../openapi/operation.ts';

const launch = z
  .strictObject({
    sid: z.string(),
    command: commandText,
    ...launchOptions,
    name: jobName,
  })
  .meta({ id: 'NewCommand' });
const commandResult = z
  .object({
    command: z.string(),
    output: z.string(),
    errors: z.string(),
    returncode: z.number().int(),
    job: z.string(),
    truncated: z.literal(true).optional(),
  })
  .meta({ id: 'Command' });

/** Characters of a command that is held for its answer; a longer one is read again. */
const SHORT = 1_024;

/** POST /remotes/launch: runs a command in a session, and waits for its end unless the client prefers otherwise. */
export default routes('json-body', (router, api) => {
  /** A function of its own, which ends before the command does: nothing holds the request's standard input any more. */
  const begin = async ({ req, res, body }: OperationInput<unknown, z.output<typeof launch>>) => {
    const { sid, name, ...payload } = body();
    const request = { kind: 'command' as const, payload, session: sid, name };
    const job = await startSessionJob(api, { req, res }, request);
    req.body = undefined;
    res.locals.releaseBody?.();
    return { job, command: payload.command.length > SHORT ? undefined : payload.command };
  };

  resource(router, '/remotes/launch', {
    post: operation({
      id: 'launchCommand',
      topic: 'commands',
      summary: 'Run a command on the host of a session',
      details:
        'Answers when the command has ended, whatever its exit status; `output` and `errors` hold up to 10 MiB each, the whole is at the job.',
      body: launch,
      headers: ['Prefer', 'Idempotency-Key'],
      answers: {
        200: answerWithLocation('The command has ended.', 'The job.', commandResult),
        202: {
          means: 'It goes on as a job; or it has ended, and its output cannot be read just now.',
          json: jobRecord,
          headers: {
            Location: 'The job.',
            'Preference-Applied': 'The preference that was followed.',
          },
        },
      },
      errors: [
        ...SESSION_JOB_ERRORS,
        'agent_problem',
        'cwd_not_found',
        'output_limit',
        'time_limit',
        'remote_disk_full',
        'wrong_node',
        'idempotency_conflict',
        'startup_files_print',
        'agent_startup_failed',
        'host_unsupported',
        'shell_unusable',
        'outcome_unknown',
      ],
      handle: async given => {
        const { req, res } = given;
        const { job, command } = await begin(given);
        res.location(`/api/jobs/${job.id}`);
        const ended = await awaitEnd(api, { req, res, job });
        if (!ended.finished) return void res.status(202).json(toJobRecord(ended));
        if (ended.state !== 'succeeded') throw jobError(ended);
        await sendCommandResult(api, res, { job: ended, command }).catch((error: unknown) => {
          // The command has run: a client that repeats a request answered 503 or 507 would run it twice.
          const { code } = toWindlassError(error);
          if (!['unavailable', 'insufficient_storage'].includes(code) || res.headersSent)
            throw error;
          res.status(202).json(toJobRecord(ended));
        });
      },
    }),
  });
});
