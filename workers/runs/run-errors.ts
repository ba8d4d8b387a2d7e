import { type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';
import { mayRunOnHost } from '../../shared/jobs/run-intent.ts';
import type { JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { LostCause, UnsureEnd } from '../host-agent/protocol/run-event.ts';
import {
  comeBackLater,
  findUnreachableSince,
  hostUnreachable,
  isUnreachable,
  RUN_RETRY_SECONDS,
} from '../ssh/host-unreachable.ts';
import type { RunOutcome } from './run-state.ts';

/** The host denies access: trying again does not help, and what runs there runs on. */
const ACCESS_DENIED: ErrorCode[] = [
  'remote_authentication_failed',
  'account_unusable',
  'host_key_changed',
  'host_not_allowed',
  'session_not_found',
];

/** `outcome_unknown` of a run that is gone, and of whose end its host has no record. */
export class RunLost extends WindlassError {
  constructor(detail: string, hint = LOOK) {
    super('outcome_unknown', { detail, hint });
  }
}

/** Whether work beside a run failed because the host is unreachable, and not for what it read there. */
export function isRunUnreachable({ job }: JobContext, error: unknown): boolean {
  if (!mayRunOnHost(job) || !isUnreachable(error)) return false;
  const { code } = error as WindlassError;
  return code !== 'remote_connection_failed' || job.unreachableSince !== null;
}

/**
 * The error for such work: releases the job, so that another attempt follows the run, or gives the run up after too
 * long. `unreachableAtStart`: since when the host was unreachable at the start of the attempt.
 */
export function followLater(
  { job }: JobContext,
  error: unknown,
  unreachableAtStart: Date | null,
): Error {
  const since = findUnreachableSince(job.unreachableSince, error, unreachableAtStart);
  return comeBackLater(since, RUN_RETRY_SECONDS, () =>
    toError({ type: 'unreachable' }, { isCancelled: false, limit: undefined }),
  );
}

/** The error for a run that did not end by itself. `limit` is aborted with the error of the caller's limit. */
export function toError(
  outcome: Exclude<RunOutcome, { type: 'ended' }>,
  { isCancelled, limit }: { isCancelled: boolean; limit: AbortSignal | undefined },
): Error {
  switch (outcome.type) {
    case 'limit':
      return outcome.hasNeverRun ? neverStarted(limit?.reason) : limit?.reason;
    case 'cancelled':
      return new WindlassError('cancelled', outcome.but && CANCELLED_BUT[outcome.but]);
    case 'diskFull':
      return new WindlassError('remote_disk_full', {
        detail: "the command's output could not be kept on the host, and it was stopped.",
        hint: "Free some space in the account's home on the host; what was written before can be read.",
      });
    case 'lost':
      return outcome.unsure ? unsureEnd(outcome.unsure) : lost(outcome.cause);
    case 'noRecord':
      return new RunLost(
        'The host was started anew, is another one or had ~/.windlass removed, or too much time has passed: it has no record of the command.',
      );
    case 'unreachable':
      return unknown('The host could not be reached for too long.');
    case 'wrongNode':
      return wrongNode(outcome.node, isCancelled);
    case 'reconnect':
      return new WindlassError('remote_connection_failed', { detail: outcome.why });
    case 'release':
      return hostUnreachable(RUN_RETRY_SECONDS);
  }
}

/**
 * For a run that may have been started: replaces an error of denied access by one that says that it may still run.
 * Returns any other error.
 */
export function explainAccessDenied(context: JobContext, error: unknown): unknown {
  if (!context.job.runAt || !(error instanceof WindlassError)) return error;
  if (!ACCESS_DENIED.includes(error.code)) return error;
  const extra = { ...error.extra, because: error.code };
  if (wasCancelled(context))
    return new WindlassError('cancelled', {
      detail: `Cancelled, but the host cannot be asked to stop it any more, so that it may run on. ${error.message}`,
      hint: 'Look on the host.',
      cause: error,
      extra,
    });
  // The plain error would read as if nothing had been run.
  return new WindlassError('outcome_unknown', {
    detail: `the command was started, and the host cannot be asked about it any more. ${error.message}`,
    hint: LOOK,
    cause: error,
    extra,
  });
}

/** A worker that is lost may leave none of the command's time, which begins before the host is asked. */
function neverStarted(reason: Error): Error {
  if (!(reason instanceof WindlassError && reason.code === 'time_limit')) return reason;
  return new WindlassError('time_limit', {
    detail: 'Time limit reached before the host could start the command; nothing ran.',
    hint: 'Start it again, or give a longer `timeout`.',
  });
}

const LOOK = 'Look on the host what the command did before you start it again.';

function unknown(detail: string): WindlassError {
  return new WindlassError('outcome_unknown', { detail, hint: LOOK });
}

/**
 * The command has ended, and a process of the agent that held part of the answer was killed, for instance for lack of
 * memory.
 */
function unsureEnd({ code, stdout, stderr, isCut }: UnsureEnd): WindlassError {
  const status =
    code === undefined
      ? 'The command has ended, and its exit status is not known: the process of the agent that waited for it was killed.'
      : `The command has ended with exit status ${code}.`;
  const sure = isCut
    ? `A process of the agent that kept its output was killed: the first ${stdout} bytes of standard output and ${stderr} of standard error are sure; what came after them may be missing or have a gap.`
    : `All of its output is stored: ${stdout} bytes of standard output and ${stderr} of standard error are sure.`;
  return unknown(`${status} ${sure}`);
}

function lost(cause?: LostCause): RunLost {
  if (cause === 'session_killed')
    return new RunLost(
      'Everything that the connection had started on the host was killed, and the supervisor of the command with it.',
      "Look on the host what the command did. If it ends what users leave running when they log out (KillUserProcesses=yes), have the account added to KillExcludeUsers in the host's logind.conf.",
    );
  if (cause === 'reboot') return new RunLost('The host was started anew while the command ran.');
  if (cause === 'no_heartbeat')
    return new RunLost('The node that the command ran on gives no sign of life.');
  return new RunLost(
    'The supervisor of the command on the host is gone and left no record of its end.',
  );
}

type But = NonNullable<Extract<RunOutcome, { type: 'cancelled' }>['but']>;

const CANCELLED_BUT: Record<But, { detail: string; hint: string }> = {
  unreachable: {
    detail:
      'Cancelled, but the host cannot be reached: what still runs there is stopped as soon as it can be.',
    hint: 'Keep the session open until the host is back.',
  },
  unseen: {
    detail:
      'Cancelled, but the host was started anew, is another one or had ~/.windlass removed: it has no record of the command, which may run on.',
    hint: 'Look on the host.',
  },
  unconfirmed: {
    detail:
      'Cancelled, but the host has not confirmed that the command ended: what still runs there is stopped as soon as it can be.',
    hint: 'Keep the session open until then, or look on the host.',
  },
  groupOnly: {
    detail:
      'Cancelled. The host has no /proc, so that only the process group of the command could be seen and ended.',
    hint: 'Look on the host for what had left that group.',
  },
};

/** A run can be followed from any node of its home, but stopped only from its own. */
function wrongNode(node: string, isCancelled: boolean): WindlassError {
  const where = `on another node, ${node}, which was not reached to stop it there`;
  const detail = isCancelled ? `Cancelled, but the command runs ${where}.` : `The run is ${where}.`;
  return new WindlassError(isCancelled ? 'cancelled' : 'wrong_node', {
    detail,
    hint: `Have ${node} added as a host of its own, and stop it there.`,
  });
}
