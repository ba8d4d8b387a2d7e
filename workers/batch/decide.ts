import type { BatchPhase } from '../../shared/jobs/payloads/batch.ts';
import type { ExitRecord, SubmissionState } from './submission-state.ts';

/** What is known of a batch job. */
export interface Known {
  submission: SubmissionState;
  /** The batch system's id; null before it is known. */
  id: string | null;
  phase: BatchPhase | undefined;
  /** Answers in a row by which it is over, or absent. */
  overFor: number;
  /** Since the first of these. */
  overSeconds: number;
  /** It was cancelled, or exceeded a limit. */
  isUnwanted: boolean;
}

/**
 * - `submit`: call the submit command. `find`: ask the batch system for the job's name. `cancel`: have it end the job
 * - `revoke`: take away the job's right to begin. `withdraw`: also the right to be submitted
 * - `again`: it never ran and never will, so submit anew. `wait`: for the next poll
 */
export type Action =
  | { type: 'wait' | 'submit' | 'find' | 'revoke' | 'again' | 'withdraw' | 'cancel' }
  | { type: 'finish'; end: ExitRecord }
  /** It was ended as it should be, and nothing of it runs. */
  | { type: 'stopped' }
  | { type: 'fail'; why: Failure };

/**
 * `gone`: its directory is missing. `ended`: by the batch system or from outside. `unbegun`: over by itself before its
 * fence. `forgotten`: begun, with an unknown end.
 */
export type Failure = 'gone' | 'ended' | 'unbegun' | 'forgotten' | 'refused';

/** Files of a node may show here later than the batch system's word. */
export const SETTLED_ANSWERS = 2;
/**
 * An NFS client may cache a directory's names for a minute (acdirmax). A look refreshes them if it can make a file;
 * until then a record may be missing.
 */
export const LATE_SECONDS = 120;
/** A job that has begun is in no queue: the batch system is asked for it so often, every 5 s. */
const UNFOUND = LATE_SECONDS / 5;

/**
 * The next action, from what is known alone. The word of the job's own files comes first. Only a submission whose right
 * to begin was taken in time is followed by another one (decision 41).
 */
export function decide(known: Known): Action {
  const { submission, isUnwanted } = known;
  if (submission.isGone) return { type: 'fail', why: 'gone' };
  if (submission.end) return decideEnd(known, submission.end);
  if (isUnwanted) return decideUnwanted(known);
  if (submission.submit === 'open') return { type: 'submit' };
  if (submission.start === 'revoked') return decideRevoked(known);
  if (known.id === null) {
    if (known.overFor >= UNFOUND) return { type: 'fail', why: 'forgotten' };
    return submission.answer === undefined ? { type: 'wait' } : { type: 'find' };
  }
  if (known.overFor < SETTLED_ANSWERS) return { type: 'wait' };
  if (submission.start === 'open') return { type: 'revoke' };
  // A job ended from outside normally leaves no record.
  if (known.phase !== 'stopped' && known.overSeconds < LATE_SECONDS) return { type: 'wait' };
  return { type: 'fail', why: known.phase === 'absent' ? 'forgotten' : 'ended' };
}

/** 128 + n is a signal, which the batch system may have sent. */
function decideEnd({ id, phase, overFor, isUnwanted }: Known, end: ExitRecord): Action {
  const isByItself = typeof end.code === 'string' || (end.code < 128 && !end.wasToldToEnd);
  if (isByItself || phase === 'ended') return { type: 'finish', end };
  if (isUnwanted) return { type: 'stopped' };
  if (phase === 'stopped') return { type: 'fail', why: 'ended' };
  // No poll asks for one whose id is not known.
  if (phase !== 'absent' || overFor < SETTLED_ANSWERS)
    return { type: id === null ? 'find' : 'wait' };
  return end.wasToldToEnd ? { type: 'fail', why: 'ended' } : { type: 'finish', end };
}

function decideUnwanted({ submission, id, phase, overFor }: Known): Action {
  if (submission.submit === 'open' || submission.start === 'open') return { type: 'withdraw' };
  if (submission.submit === 'withdrawn') return { type: 'stopped' };
  if (id === null) {
    if (overFor < UNFOUND) return { type: 'find' };
    return submission.start === 'revoked'
      ? { type: 'stopped' }
      : { type: 'fail', why: 'forgotten' };
  }
  const isOver =
    phase === 'stopped' || phase === 'ended' || (phase === 'absent' && overFor >= SETTLED_ANSWERS);
  return isOver ? { type: 'stopped' } : { type: 'cancel' };
}

/** Revoked before it began: the batch system refused it, ended it while it waited, or lost it. */
function decideRevoked({ id, phase, submission }: Known): Action {
  if (id === null)
    return submission.answer === 'overdue' ? { type: 'again' } : { type: 'fail', why: 'refused' };
  if (phase === 'absent') return { type: 'again' };
  return { type: 'fail', why: phase === 'ended' ? 'unbegun' : 'ended' };
}
