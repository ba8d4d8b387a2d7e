import { isDeepStrictEqual } from 'node:util';
import type { OutputOffsets } from '../../shared/jobs/output.ts';
import type { BatchPhase, BatchState } from '../../shared/jobs/payloads/batch.ts';
import { MAX_SEARCHES, SETTLED_ANSWERS } from './decide.ts';
import { type Statuses, tokenOf } from './engine.ts';
import type { Poll } from './login-node.ts';

/** An open batch job as a poll reads it. */
export interface Followed {
  id: string;
  /** The directory of its present submission. */
  directory: string;
  batch: BatchState;
  state: string;
  stored: OutputOffsets;
}

/** What a poll changes of a job's row. */
export interface Change {
  directory: string;
  /** As the poll read it: what an attempt has written since is kept. */
  read: BatchState;
  batch: BatchState;
  /** It has begun. */
  runs: boolean;
  /** A worker has something to do for it. */
  wakes: boolean;
}

/** The changes to a job's row; undefined if there are none. Without `hasRoom` for its output no worker can go on with it. */
export function applyPoll(
  job: Followed,
  { submissions, sizes, statuses, unanswered }: Poll,
  { now = new Date(), hasRoom = true } = {},
): Change | undefined {
  const { directory, stored } = job;
  const submission = submissions.get(directory);
  const earlier = job.batch;
  const isAsked = earlier.id !== null || earlier.search !== undefined;
  const known = unanswered !== undefined && isAsked ? { ...earlier, unanswered } : earlier;
  const batch = statuses ? withStatuses(job, statuses, now) : known;
  const hasBegun = submission?.start === 'begun' || batch.phase === 'running';
  const runs = hasBegun && job.state !== 'running';
  const size = sizes.get(directory);
  const hasOutput =
    size !== undefined && (size.stdout > stored.stdout || size.stderr > stored.stderr);
  const hasEnded = submission?.end !== undefined || submission?.isGone === true;
  const wakes = hasRoom && (hasEnded || hasOutput || isNews(earlier, batch));
  const isNew = !isDeepStrictEqual(batch, earlier);
  return isNew || runs || wakes ? { directory, read: earlier, batch, runs, wakes } : undefined;
}

/** Whether an attempt is due for what the batch system said. Once: the attempt says when the next one is to be. */
function isNews(earlier: BatchState, batch: BatchState): boolean {
  const reaches = (answers: number) => batch.overFor >= answers && earlier.overFor < answers;
  if (reaches(SETTLED_ANSWERS) || (batch.id === null && reaches(MAX_SEARCHES))) return true;
  const isWanted = batch.search !== undefined || batch.isUnwanted === true;
  if (isWanted && batch.unanswered !== undefined && earlier.unanswered === undefined) return true;
  if (batch.isUnwanted && isFinal(batch.phase) && !isFinal(earlier.phase)) return true;
  return batch.id !== earlier.id || (batch.search === 'none' && earlier.search === 'due');
}

function withStatuses(job: Followed, statuses: Statuses, now: Date): BatchState {
  const { batch, directory } = job;
  if (batch.search === undefined) return withStatus(job, statuses, now);
  const { id } = statuses.leader(tokenOf(directory)) ?? { id: null };
  // Earlier answers were not about this id.
  const { phase: _, overSince: __, unanswered: ___, search: ____, ...rest } = batch;
  if (id !== null) return withStatus({ ...job, batch: { ...rest, id, overFor: 0 } }, statuses, now);
  if (batch.id !== null)
    return withStatus({ ...job, batch: { ...batch, search: 'none' } }, statuses, now);
  return { ...rest, search: 'none', phase: 'absent', overFor: batch.overFor + 1 };
}

/** If the batch system no longer knows the job, its last words are kept. */
function withStatus(
  { batch: earlier, directory }: Followed,
  statuses: Statuses,
  now: Date,
): BatchState {
  const { unanswered: _, ...batch } = earlier;
  const { id } = batch;
  if (id === null) return batch;
  const { phase: __, overSince: ___, ...rest } = batch;
  const status = statuses.find({ id, token: tokenOf(directory) });
  // Two in a row are enough.
  const overFor = Math.min(batch.overFor + 1, SETTLED_ANSWERS);
  const since = batch.overFor > 0 ? batch.overSince : undefined;
  const over = { overFor, overSince: since ?? now.toISOString() };
  if (!status) {
    // Its last word is final: absence confirms it.
    if (isFinal(batch.phase)) return { ...batch, ...over };
    // It may be the job, with another name; it may also be another job, if the batch system lost its state.
    // One that was never told of by this id is not it: the id is to be doubted.
    const isUnclear = batch.state !== null && statuses.find({ id, token: null }) !== undefined;
    return isUnclear ? { ...rest, overFor: 0 } : { ...batch, phase: 'absent', ...over };
  }
  const { state, reason, nodes, phase } = status;
  const its = { ...rest, state, reason, nodes, ...(phase ? { phase } : {}) };
  return isFinal(phase) ? { ...its, ...over } : { ...its, overFor: 0 };
}

export const isFinal = (phase: BatchPhase | undefined) => phase === 'ended' || phase === 'stopped';
