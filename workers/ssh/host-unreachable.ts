import type { JobRow } from '../../shared/database/schema.ts';
import { type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { isUnanswered } from '../host-agent/protocol/no-answer.ts';

/** Seconds until the host of a run is tried again. */
export const RUN_RETRY_SECONDS = 10;
/** Seconds until the host of a batch job is tried again: meanwhile its poller sees what becomes of the job. */
export const BATCH_RETRY_SECONDS = 30;
/** How long a host may be unreachable before what runs there is given up. */
const GIVEN_UP_MS = 12 * 3_600_000;
/** The login works, and the agent cannot start: the disk is full, or a start-up file has begun to print. */
const AFTER_LOGIN: ErrorCode[] = [
  'agent_startup_failed',
  'startup_files_print',
  'shell_unusable',
  'host_unsupported',
];
/** The host may be of use again later. */
const UNREACHABLE: ErrorCode[] = ['remote_connection_failed', 'reconnect_required', ...AFTER_LOGIN];

export const isUnreachable = (error: unknown) =>
  error instanceof WindlassError && UNREACHABLE.includes(error.code);

/** Whether only the session's user can make its connection again. */
export const isReconnectRequired = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'reconnect_required';

/**
 * Since when a run's host has been unreachable. A login resets `unreachableSince`, so where the agent then cannot start, the
 * value at the start of the attempt, `unreachableAtStart`, counts. Time in which the user has to log in again does not count:
 * that may be a weekend.
 */
export function findUnreachableSince(
  unreachableSince: Date | null,
  error: unknown,
  unreachableAtStart?: Date | null,
): Date {
  if (isReconnectRequired(error)) return new Date();
  const before = isAfterLogin(error) || isUnanswered(error) ? unreachableAtStart : null;
  return unreachableSince ?? before ?? new Date();
}

const isAfterLogin = (error: unknown) =>
  error instanceof WindlassError && AFTER_LOGIN.includes(error.code);

/** Whether work on a host that has been unreachable since then is given up. */
export const isUnreachableTooLong = (since: Date) => Date.now() - since.getTime() > GIVEN_UP_MS;

/** Releases the job, and so its slot, while its host is unreachable. */
export const hostUnreachable = (forSeconds: number, set?: Partial<JobRow>) =>
  new ReleaseJob('the host cannot be reached', forSeconds, set);

/** Like hostUnreachable(), and stores since when the host is unreachable; after too long, the error that gives the job up. */
export const comeBackLater = (since: Date, forSeconds: number, givenUp: () => Error): Error =>
  isUnreachableTooLong(since)
    ? givenUp()
    : hostUnreachable(forSeconds, { unreachableSince: since });
