import { ADVISORY_LOCKS } from '../database/advisory-locks.ts';
import { QUEUES, type QueueName } from './catalog.ts';
import { HAS_SLOT, IS_WAITING } from './job-conditions.ts';
import { IS_ALIVE } from './lease.ts';

/**
 * How many slots of a queue one user is given, of all that the live workers have (decision 33). A job has a slot from
 * its dispatch to its end or release.
 */
export interface ShareRules {
  /** While another user's work waits. */
  share: number;
  /** Who has so many gets none of the reserve. */
  half: number;
  /** Slots that stay free for those who have less. */
  reserve: number;
}

const HALF = 0.5;

export function shareRules(slots: number, limitShare: number): ShareRules {
  return {
    // As the database computes it: 100 × 0.07 is 7.
    share: Math.ceil(Number((slots * limitShare).toFixed(6))),
    half: Math.ceil(slots * HALF),
    reserve: Math.max(1, Math.floor(slots / 8)),
  };
}

/** SQL for the slots of the queue's live workers, those aside that take no more. */
export const slotsOf = (queue: QueueName) =>
  `select coalesce(sum((slots->>${quote(queue)})::int), 0)::int from workers where not draining and ${IS_ALIVE}`;

/** SQL: a worker that is being drained, or stops and so has no slots any more. */
const TAKES_NO_MORE = `(draining or not jsonb_path_exists(slots, '$.* ? (@ > 0)'))`;

/** SQL, of held jobs: not of a worker that takes no more, whose slots do not count either. */
export const OF_ACTIVE_WORKERS = `(num_nonnulls(lease_token) = 0 or worker is null or worker not in (select id from workers where ${TAKES_NO_MORE}))`;

/** SQL for the two numbers of the advisory lock under which slots of a queue are given. */
export const lockOf = (queue: QueueName) => `${ADVISORY_LOCKS.slots}, ${QUEUES.indexOf(queue)}`;

/**
 * SQL for the time at which a new job of `asked.owner` is dispatched: now, where a slot is free within the share that
 * the user may always have. Null leaves it to the dispatcher, also where earlier jobs of the user wait or slots are
 * just being given: a count could be outdated.
 */
export function dispatchedAtOnce(queue: QueueName, limitShare: number): string {
  const ofQueue = `from jobs where queue = ${quote(queue)}`;
  return `case
    when exists (select ${ofQueue} and ${IS_WAITING} and owner = asked.owner) then null
    when not pg_try_advisory_xact_lock(${lockOf(queue)}) then null
    when (
      select held.n < alive.slots and held.own < ceil(alive.slots * ${Math.min(limitShare, HALF)})
      from (${slotsOf(queue)}) alive(slots), (
        select count(*) as n, count(*) filter (where owner = asked.owner) as own ${ofQueue} and ${HAS_SLOT} and ${OF_ACTIVE_WORKERS}
      ) held
    ) then now() end`;
}

/** The name becomes part of a statement's text. */
export function quote(queue: QueueName): string {
  if (!QUEUES.includes(queue)) throw new Error(`no queue: ${queue}`);
  return `'${queue}'`;
}
