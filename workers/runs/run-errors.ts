import { type ErrorCode, WindlassError } from '../../shared/errors.ts';
import type { JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { LostCause } from '../host-agent/protocol/run-event.ts';

/** Trying again would not help, and what runs there runs on. */
const SHUT_OUT: ErrorCode[] = [
  'remote_authentication_failed',
  'host_key_changed',
  'host_not_allowed',
  'startup_files_print',
  'session_not_found',
];

export function lost(cause?: LostCause): WindlassError {
  if (cause === 'session_killed')
    return unknown(
      'Everything that the connection had started on the host was killed, what watched over the command with it.',
      "Look on the host what the command did. If it ends what users leave running when they log out (KillUserProcesses=yes), have the account added to KillExcludeUsers in the host's logind.conf.",
    );
  if (cause === 'reboot') return unknown('The host was started anew while the command ran.');
  if (cause === 'no_heartbeat')
    return unknown('The node that the command ran on gives no sign of life.');
  return unknown(
    'What watched over the command on the host is gone and left no record of its end.',
  );
}

export function unknown(
  detail: string,
  hint = 'Look on the host what the command did before you start it again.',
): WindlassError {
  return new WindlassError('outcome_unknown', {
    detail: `Outcome unknown: ${detail}`,
    hint,
  });
}

/** The end of a run that may have been started, where its host can be asked no more; any other error as it is. */
export function explainShutOut(context: JobContext, error: unknown): unknown {
  if (!context.job.runAt || !(error instanceof WindlassError) || !SHUT_OUT.includes(error.code))
    return error;
  return wasCancelled(context) ? cancelledShutOut(error) : shutOut(error);
}

/** The plain error would read as if nothing had been run. */
function shutOut(error: WindlassError): WindlassError {
  return new WindlassError('outcome_unknown', {
    detail: `Outcome unknown: the command was started, and the host cannot be asked about it any more. ${error.message}`,
    hint: 'Look on the host what the command did before you start it again.',
    cause: error,
    extra: { ...error.extra, because: error.code },
  });
}

/** Of a run that was to be stopped, on a host that cannot be asked any more. */
function cancelledShutOut(error: WindlassError): WindlassError {
  return new WindlassError('cancelled', {
    detail: `Cancelled, but the host cannot be asked to stop it any more, so that it may run on. ${error.message}`,
    hint: 'Look on the host.',
    cause: error,
    extra: { ...error.extra, because: error.code },
  });
}

export const cancelledAway = () =>
  new WindlassError('cancelled', {
    detail:
      'Cancelled, but the host cannot be reached: what still runs there is stopped as soon as it can be.',
    hint: 'Keep the session open until the host is back.',
  });

/** Of a run that the host knows nothing of, where it may have been started all the same. */
export const cancelledUnseen = () =>
  new WindlassError('cancelled', {
    detail:
      'Cancelled, but the host was started anew, is another one or had ~/.windlass removed: it has no record of the command, which may run on.',
    hint: 'Look on the host.',
  });

export const unconfirmed = () =>
  new WindlassError('cancelled', {
    detail:
      'Cancelled, but the host has not confirmed that the command ended: what still runs there is stopped as soon as it can be.',
    hint: 'Keep the session open until then, or look on the host.',
  });

/** Of a host that could not show all of its processes. */
export const groupOnly = () =>
  new WindlassError('cancelled', {
    detail:
      'Cancelled. The host has no /proc, so that only the process group of the command could be seen and ended.',
    hint: 'Look on the host for what had left that group.',
  });

export function diskFull(): WindlassError {
  return new WindlassError('remote_disk_full', {
    detail:
      "Remote disk full: the command's output could not be kept on the host, and it was stopped.",
    hint: "Free some space in the account's home on the host; what was written before can be read.",
  });
}
