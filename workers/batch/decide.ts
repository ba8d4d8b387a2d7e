import type { BatchPhase } from '../../shared/jobs/payloads/batch.ts';
import type { ExitRecord, SubmissionState } from './submission-state.ts';

/** What is known of a batch job. */
export interface Known {
  submission: SubmissionState;
  /** Of the batch system; null before it is known. */
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
 * - `wait`: nothing to do before the next poll. `submit`: call the submit command. `find`: ask the batch system for its name.
 * - `void`: take its right to begin from it. `again`: it never ran and never will, and a new submission is made.
 * - `withdraw`: void, and take its right to be submitted. `cancel`: have the batch system end it.
 */
export type Action =
  | { type: 'wait' | 'submit' | 'find' | 'void' | 'again' | 'withdraw' | 'cancel' }
  | { type: 'finish'; end: ExitRecord }
  /** It was ended as it should be, and nothing of it runs. */
  | { type: 'stopped' }
  | { type: 'fail'; why: Failure };

/**
 * `gone`: its directory. `ended`: by its batch system or from outside. `unbegun`: over by itself, before its fence. `forgotten`:
 * begun, and nobody knows its end.
 */
export type Failure = 'gone' | 'ended' | 'unbegun' | 'forgotten' | 'refused';

/** Files of a node may be seen later here than the word of the batch system. */
export const SETTLED_ANSWERS = 2;
/**
 * A client of NFS may go by what it has read of a folder for a minute (acdirmax). A look refreshes that, where a file can be
 * made; so long a record that is not seen may come.
 */
export const LATE_SECONDS = 120;
/** A job that has begun is in no queue: it is looked for so often, every 5 s. */
const UNFOUND = LATE_SECONDS / 5;

/**
 * What to do next, by what is known and nothing else. The word of the job's own files comes first: what it did is done. A
 * submission is followed by another one only where its right to begin was taken from it before it had begun.
 */
export function decide(known: Known): Action {
  const { submission, isUnwanted } = known;
  if (submission.isGone) return { type: 'fail', why: 'gone' };
  if (submission.end) return decideEnd(known, submission.end);
  if (isUnwanted) return decideUnwanted(known);
  if (submission.ask === 'ask') return { type: 'submit' };
  if (submission.go === 'void') return decideVoid(known);
  if (known.id === null) {
    if (known.overFor >= UNFOUND) return { type: 'fail', why: 'forgotten' };
    return submission.answer === undefined ? { type: 'wait' } : { type: 'find' };
  }
  if (known.overFor < SETTLED_ANSWERS) return { type: 'wait' };
  if (submission.go === 'go') return { type: 'void' };
  // What was ended from outside leaves no record, as a rule.
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
  if (submission.ask === 'ask' || submission.go === 'go') return { type: 'withdraw' };
  if (submission.ask === 'withdrawn') return { type: 'stopped' };
  if (id === null) {
    if (overFor < UNFOUND) return { type: 'find' };
    return submission.go === 'void' ? { type: 'stopped' } : { type: 'fail', why: 'forgotten' };
  }
  const isOver =
    phase === 'stopped' || phase === 'ended' || (phase === 'absent' && overFor >= SETTLED_ANSWERS);
  return isOver ? { type: 'stopped' } : { type: 'cancel' };
}

/** Voided before it began: refused by the batch system, ended while it waited there, or lost by it. */
function decideVoid({ id, phase, submission }: Known): Action {
  if (id === null)
    return submission.answer === 'overdue' ? { type: 'again' } : { type: 'fail', why: 'refused' };
  if (phase === 'absent') return { type: 'again' };
  return { type: 'fail', why: phase === 'ended' ? 'unbegun' : 'ended' };
}
