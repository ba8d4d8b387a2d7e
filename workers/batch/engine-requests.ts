import type { EngineName } from '../../shared/jobs/payloads/batch.ts';
import { type Followed, isFinal } from './apply-poll.ts';
import { type Statuses, tokenOf } from './engine.ts';
import type { FollowedRow } from './followed-jobs.ts';
import type { Asked, LoginNode } from './login-node.ts';

/** A submission, as its batch system may know it. */
export type Submitted = Pick<Followed, 'directory' | 'batch'>;

/** A job that has ended here, and that its batch system may still have. */
export function toUnended({ isUnknown, state, directory, batch }: FollowedRow): Submitted[] {
  if (isUnknown || state === 'succeeded' || !directory || !batch?.id) return [];
  return isFinal(batch.phase) ? [] : [{ directory, batch }];
}

/** An account whose turn it is not asks only if it has a job to find or to end. */
export function toAsk(open: Followed[], unended: Submitted[], asks: boolean): Asked | undefined {
  const searched = open.filter(({ batch }) => batch.search !== undefined);
  const unwanted = [...open.filter(({ batch }) => batch.isUnwanted), ...unended];
  if (!asks && searched.length + unwanted.length === 0) return undefined;
  const ids = [...open, ...unended].flatMap(({ batch }) => batch.id ?? []);
  // An id that the batch system has not told of may be another number that its submit command printed.
  const unproven = unwanted.filter(({ batch }) => batch.state === null);
  const named = [...searched, ...unproven];
  const tokens = [...new Set(named.map(({ directory }) => tokenOf(directory)))];
  if (ids.length + tokens.length === 0) return undefined;
  return { ids, tokens, ended: unended.map(({ directory }) => directory) };
}

/** An account's jobs are all of one batch system. */
export const engineOf = ([first]: Submitted[]): EngineName => first?.batch.engine ?? 'slurm';

/**
 * Ends what is unwanted in one call of the batch system, by the ids that it has just told for their tokens: any other id may be
 * another job's. A call that fails is made again by the next poll.
 */
export async function endUnwanted(
  node: LoginNode,
  given: { unwanted: Submitted[]; statuses: Statuses | undefined; seconds: number },
): Promise<void> {
  const { unwanted, statuses, seconds } = given;
  const told = unwanted.flatMap(({ directory }) => statuses?.of(tokenOf(directory)) ?? []);
  const ids = told.filter(({ phase }) => !isFinal(phase)).map(({ id }) => id);
  if (ids.length > 0) await node.cancel(engineOf(unwanted), ids, seconds);
}
