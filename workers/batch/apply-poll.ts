import { isDeepStrictEqual } from 'node:util';
import type { OutputOffsets } from '../../shared/jobs/output.ts';
import type { BatchPhase, BatchState } from '../../shared/jobs/payloads/batch.ts';
import { SETTLED_ANSWERS } from './decide.ts';
import { statusKey, tokenOf } from './engine.ts';
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
  const isUnanswered = unanswered !== undefined && job.batch.id !== null;
  const known = isUnanswered ? { ...job.batch, unanswered } : job.batch;
  const batch = statuses ? withStatus(job, statuses, now) : known;
  const hasBegun = submission?.start === 'begun' || batch.phase === 'running';
  const runs = hasBegun && job.state !== 'running';
  const size = sizes.get(directory);
  const hasOutput =
    size !== undefined && (size.stdout > stored.stdout || size.stderr > stored.stderr);
  // Once: its attempt says when the next one is to be.
  const isNowOver = batch.overFor >= SETTLED_ANSWERS && job.batch.overFor < SETTLED_ANSWERS;
  const hasEnded = submission?.end !== undefined || submission?.isGone === true;
  const wakes = hasRoom && (hasEnded || isNowOver || hasOutput);
  const isNew = !isDeepStrictEqual(batch, job.batch);
  return isNew || runs || wakes ? { directory, batch, runs, wakes } : undefined;
}

/** If the batch system no longer knows the job, its last words are kept. */
function withStatus(
  { batch: earlier, directory }: Followed,
  statuses: NonNullable<Poll['statuses']>,
  now: Date,
): BatchState {
  const { unanswered: _, ...batch } = earlier;
  if (batch.id === null) return batch;
  const { phase: __, overSince: ___, ...rest } = batch;
  const find = (token: string | null) => statuses.get(statusKey({ id: batch.id ?? '', token }));
  const status = find(tokenOf(directory));
  // Two in a row are enough.
  const overFor = Math.min(batch.overFor + 1, SETTLED_ANSWERS);
  const since = batch.overFor > 0 ? batch.overSince : undefined;
  const over = { overFor, overSince: since ?? now.toISOString() };
  if (!status) {
    // Its last word is final: absence confirms it.
    if (isFinal(batch.phase)) return { ...batch, ...over };
    // It may be the job, with another name; it may also be another job, if the batch system lost its state.
    // One that was never told of by this id is not it: the id is to be doubted.
    const isUnclear = batch.state !== null && find(null) !== undefined;
    return isUnclear ? { ...rest, overFor: 0 } : { ...batch, phase: 'absent', ...over };
  }
  const { state, reason, nodes, phase } = status;
  const its = { ...rest, state, reason, nodes, ...(phase ? { phase } : {}) };
  return isFinal(phase) ? { ...its, ...over } : { ...its, overFor: 0 };
}

const isFinal = (phase: BatchPhase | undefined) => phase === 'ended' || phase === 'stopped';
