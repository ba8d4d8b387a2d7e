import { z } from 'zod';
import type { Result } from '../../shared/jobs/catalog.ts';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { loginChallenge } from '../../shared/jobs/payloads/login.ts';
import { answerWithLocation, type TypedResponse } from '../openapi/operation.ts';

/** The answers of every operation that logs in to a host. */
export const LOGIN_ANSWERS = {
  200: answerWithLocation(
    'The session is open.',
    'The session.',
    z
      .object({
        sid: z.string(),
        /** What the host showed at the login, if anything. */
        banner: z.string().optional(),
      })
      .meta({ id: 'OpenedSession' }),
  ),
  202: answerWithLocation(
    'The host asks for more: answer with POST /remotes/(sid)/answers before it expires.',
    'The session.',
    z.object({ sid: z.string(), ...loginChallenge.shape }).meta({ id: 'LoginChallenge' }),
  ),
};

/** What a login can fail with. */
export const LOGIN_ERRORS = [
  'remote_authentication_failed',
  'account_unusable',
  'host_not_allowed',
  'cancelled',
  'host_changed',
  'host_key_changed',
  'idempotency_conflict',
  'agent_startup_failed',
  'host_unsupported',
  'shell_unusable',
  'remote_connection_failed',
  'startup_files_print',
  'worker_lost',
] as const;

/** Sends what the job of a login came to. */
export function sendLogin(
  res: TypedResponse<typeof LOGIN_ANSWERS>,
  { session: sid, result }: JobSummary,
): void {
  if (sid === null) throw new Error('a login is always of a session');
  const { challenge, banner } = result as Result<'connect'>;
  res.location(`/api/remotes/${sid}`);
  if (challenge) res.status(202).json({ sid, ...challenge });
  else res.json({ sid, banner });
}
