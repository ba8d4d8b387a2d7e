import type { BatchPhase } from '../../shared/jobs/payloads/batch.ts';
import type { ExitRecord, SubmissionState } from './submission-state.ts';

/** What is known of a batch job. */
export interface Known {
  files: SubmissionState;
  /** The batch system's id; null before it is known. */
  id: string | null;
  phase: BatchPhase | undefined;
  /** The batch system has once told of it, by this id. */
  wasSeen: boolean;
  /** Answers in a row by which it is over, or absent. */
  overFor: number;
  /** Seconds since the first of these answers. */
  overSeconds: number;
  /** Seconds since its own record of its end was first seen. */
  endSeconds: number;
  /** It was cancelled, or exceeded a limit. */
  isUnwanted: boolean;
}

/**
 * - `submit`: call the submit command. `find`: have polls look for the job's name. `cancel`: have polls end the job
 * - `revoke`: take away the job's right to begin. `withdraw`: also the right to be submitted
 * - `again`: it never ran and never will, so submit anew. `wait`: for the next poll
 */
export type Action =
  | { type: 'wait' | 'submit' | 'find' | 'revoke' | 'withdraw' | 'cancel' }
  | { type: 'again'; why: Unbegun }
  | { type: 'finish'; end: ExitRecord }
  /** It was ended as it should be, and nothing of it runs. */
  | { type: 'stopped' }
  | { type: 'fail'; why: Failure };

/** The submit command did not answer, or the batch system never told of the job that it had taken. */
export type Unbegun = 'unanswered' | 'forgotten';

/**
 * `gone`: its directory is missing. `ended`: by the batch system or from outside. `restarted`: ended by the batch system, which
 * has started it again. `unbegun`: over by itself before its fence. `vanished`: the batch system had it, and no longer knows it,
 * before it had begun. `forgotten`: begun, with an unknown end. `refused`: not taken.
 */
export type Failure =
  | 'gone'
  | 'ended'
  | 'restarted'
  | 'unbegun'
  | 'vanished'
  | 'forgotten'
  | 'refused';

/** Answers in a row that settle that a job is over: files of a node may show here later than the first. */
export const SETTLED_ANSWERS = 2;
/**
 * Seconds until files of a node that do not show here count as missing. An NFS client may cache a directory's names for
 * a minute (acdirmax); a look refreshes them if it can make a file.
 */
export const LATE_SECONDS = 120;
/**
 * Seconds for which the batch system is asked how a job ended that recorded its end: it may be unreachable, or completing it.
 */
export const JUDGED_SECONDS = 30;
/** Searches by name, one every 5 s, after which a job that has begun is lost: it is in no queue. */
export const MAX_SEARCHES = LATE_SECONDS / 5;

/**
 * The next action, from what is known alone. The job's own files come first. Only a submission whose right
 * to begin was taken in time is followed by another one (decision 41).
 */
export function decide(known: Known): Action {
  const { files, isUnwanted } = known;
  if (files.isGone) return { type: 'fail', why: 'gone' };
  if (files.end) return decideEnd(known, files.end);
  if (isUnwanted) return decideUnwanted(known);
  if (files.submit === 'open') return { type: 'submit' };
  if (files.start === 'revoked') return decideRevoked(known);
  if (known.id === null) {
    if (known.overFor >= MAX_SEARCHES) return { type: 'fail', why: 'forgotten' };
    return files.answer === undefined ? { type: 'wait' } : { type: 'find' };
  }
  if (known.overFor < SETTLED_ANSWERS) return { type: 'wait' };
  if (isDoubtful(known)) return { type: 'find' };
  if (files.start === 'open') return { type: 'revoke' };
  // A job ended from outside normally leaves no record.
  if (known.phase !== 'stopped' && known.overSeconds < LATE_SECONDS) return { type: 'wait' };
  if (known.phase === 'absent') return { type: 'fail', why: 'forgotten' };
  return { type: 'fail', why: files.wasStartedAgain ? 'restarted' : 'ended' };
}

/**
 * The batch system's word decides whether it ended the job: a script may trap its signal and exit with 0. 128 + n is a
 * signal, which it may have sent.
 */
function decideEnd(known: Known, end: ExitRecord): Action {
  const { files, id, phase, overFor, endSeconds, isUnwanted } = known;
  if (typeof end.code === 'string') return { type: 'finish', end };
  const isByItself = end.code < 128 && !end.wasToldToEnd;
  // It was ended to be started again, whose empty run is what the batch system may tell of.
  if (files.wasStartedAgain && !isByItself)
    return isUnwanted ? { type: 'stopped' } : { type: 'fail', why: 'restarted' };
  if (phase === 'ended') return { type: 'finish', end };
  if (isUnwanted) return isByItself ? { type: 'finish', end } : { type: 'stopped' };
  if (phase === 'stopped') return { type: 'fail', why: 'ended' };
  if (isByItself) {
    // Its last word may be older than the end.
    const mayBeStopped = id !== null && phase !== 'absent' && endSeconds < JUDGED_SECONDS;
    return mayBeStopped ? { type: 'wait' } : { type: 'finish', end };
  }
  // No poll asks for one whose id is not known.
  if (phase !== 'absent' || overFor < SETTLED_ANSWERS)
    return { type: id === null ? 'find' : 'wait' };
  if (id !== null && isDoubtful(known)) return { type: 'find' };
  return end.wasToldToEnd ? { type: 'fail', why: 'ended' } : { type: 'finish', end };
}

function decideUnwanted(known: Known): Action {
  const { files, id, phase, overFor, overSeconds } = known;
  if (files.submit === 'open' || files.start === 'open') return { type: 'withdraw' };
  if (files.submit === 'withdrawn') return { type: 'stopped' };
  if (id === null) {
    if (overFor < MAX_SEARCHES) return { type: 'find' };
    return files.start === 'revoked' ? { type: 'stopped' } : { type: 'fail', why: 'forgotten' };
  }
  if (phase === 'stopped' || phase === 'ended') return { type: 'stopped' };
  if (phase !== 'absent' || overFor < SETTLED_ANSWERS) return { type: 'cancel' };
  if (isDoubtful(known)) return { type: 'find' };
  if (files.start === 'revoked') return { type: 'stopped' };
  // No proof of its end: it may still run where nobody knows it.
  if (overSeconds < LATE_SECONDS) return { type: 'cancel' };
  return { type: 'fail', why: 'forgotten' };
}

/**
 * The batch system has never known the id, which may be another number that the submit command printed: it is asked for
 * the job's name, for a while if it has begun.
 */
const isDoubtful = ({ files, phase, wasSeen, overSeconds }: Known) =>
  phase === 'absent' && !wasSeen && (files.start !== 'begun' || overSeconds < LATE_SECONDS);

/** Revoked before it began: the batch system refused the job, ended it while it waited, or does not know it. */
function decideRevoked({ id, phase, files, wasSeen }: Known): Action {
  if (id === null)
    return files.answer === 'overdue'
      ? { type: 'again', why: 'unanswered' }
      : { type: 'fail', why: 'refused' };
  // Nobody can tell whether the batch system lost a job that it had, or somebody cancelled it there.
  if (phase === 'absent')
    return wasSeen ? { type: 'fail', why: 'vanished' } : { type: 'again', why: 'forgotten' };
  return { type: 'fail', why: phase === 'ended' ? 'unbegun' : 'ended' };
}
