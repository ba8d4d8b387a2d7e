import type { Db } from '../../shared/database/connect.ts';
import { type QueueState, readLastClaims } from './queue-state.ts';

/** Seconds after which work that waits while its queue makes no progress is stuck. */
export const STUCK_SECONDS = 30;

/**
 * The queues whose work has been due for 30 s while no worker alive has a job of the queue and none was claimed since. Full
 * slots, jobs with a future `not_before`, and a lack of workers without work are not stuck.
 */
export async function findStuck(db: Db, queues: QueueState[]): Promise<QueueState[]> {
  const suspects = queues.filter(isSuspect);
  if (suspects.length === 0) return [];
  const taken = await readLastClaims(db);
  return suspects.filter(({ queue }) => (taken.get(queue) ?? Infinity) > STUCK_SECONDS);
}

/** One line about them; undefined where there are none. */
export const describeStuck = (stuck: QueueState[]): string | undefined =>
  stuck.length > 0 ? `Work waits and is not done: ${stuck.map(describe).join('; ')}.` : undefined;

const isSuspect = ({ oldestSeconds, isWorking }: QueueState) =>
  oldestSeconds > STUCK_SECONDS && !isWorking;

const describe = ({ queue, due, oldestSeconds, slots }: QueueState) =>
  `${queue}, ${due} ${due === 1 ? 'job' : 'jobs'}, for ${Math.round(oldestSeconds)} s, ${slots === 0 ? 'no worker takes its jobs' : `with ${slots} slots of workers alive`}`;
