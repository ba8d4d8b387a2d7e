import { sql } from 'drizzle-orm';

/**
 * Conditions on jobs, word for word the predicates of their indexes. They count columns, for which the planner has no
 * statistics: those of `finished` say "one row" after a million ended jobs, and it then reads every open job to find
 * one by its id (decision 28).
 */

/**
 * Three spellings of "has not ended", one for each index: this one for rows that are named by their ids, IS_OPEN for all of an
 * owner, and `finished is null` for those of a session, a project, a model or an upload.
 */
const NOT_ENDED = 'num_nonnulls(finished) = 0';
/**
 * For all open jobs of an owner, or of everybody: the index is jobs_open. The planner cannot prove this from NOT_ENDED, so it
 * does not take that index where rows are named by their ids.
 */
export const IS_OPEN = 'num_nulls(finished) = 1';
/** Waits to be dispatched, now or when its `not_before` comes. The index is jobs_waiting_by_owner. */
export const IS_WAITING = 'num_nonnulls(finished, lease_token, dispatched) = 0';
/** 1: its host was unreachable when it was last tried; else 0. */
export const IS_UNREACHABLE = 'num_nonnulls(unreachable_since)';
/** Waiting jobs that may be dispatched, by sort: an owner's jobs of one sort are read in order by jobs_waiting_by_owner. */
export const DUE = {
  released: `${IS_UNREACHABLE} = 0 and not_before <= now()`,
  fresh: `${IS_UNREACHABLE} = 0 and not_before is null`,
  unreachable: `${IS_UNREACHABLE} = 1 and not_before <= now()`,
} as const;
/** Takes a slot: it was dispatched, or a worker has its lease. The index is jobs_held. */
export const HAS_SLOT = 'num_nonnulls(finished) = 0 and num_nonnulls(lease_token, dispatched) > 0';
/** Its run or submission may be on its host, or its files: see run-intent.ts. The index is jobs_unremoved_runs. */
const LEAVES_UNREMOVED = 'run_at is not null and not run_removed';
/** No worker has its lease: for statements that name the rows by their ids. */
const NOT_LEASED = 'num_nonnulls(finished, lease_token) = 0';

/**
 * Has ended: for retention alone. Not `finished is not null`: the planner would then read all jobs by jobs_retention for
 * one session's last end.
 */
const HAS_ENDED = 'num_nonnulls(finished) = 1';

/** At the last check no worker supported it: nothing else lets a job wait for so long. See park-unsupported.ts. */
const IS_PARKED = `not_before > now() + interval '5 minutes' and not_before <= now() + interval '1 hour'`;

/**
 * Waits longer than the longest pause, that of park-unsupported.ts: the clock was set back since. 'infinity' is left out:
 * somebody may hold a job for good.
 */
const IS_PAUSED_TOO_FAR = `not_before > now() + interval '61 minutes' and not_before < 'infinity'`;

export const isOpenById = sql.raw(NOT_ENDED);
export const isOpenByOwner = sql.raw(IS_OPEN);
export const hasEnded = sql.raw(HAS_ENDED);
export const isWaiting = sql.raw(IS_WAITING);
export const hasSlot = sql.raw(HAS_SLOT);
export const isNotLeased = sql.raw(NOT_LEASED);
export const leavesUnremoved = sql.raw(LEAVES_UNREMOVED);
export const isParked = sql.raw(IS_PARKED);
export const isPausedTooFar = sql.raw(IS_PAUSED_TOO_FAR);

/** How long an ended session keeps its sealed credential, with which its runs and batch jobs are removed from their host. */
export const CLEAN_UP = sql.raw(`interval '10 minutes'`);

/** For statements that name no table; see catalog.ts for lists of kinds. */
export const kindIsOneOf = (kinds: readonly string[]) =>
  sql.raw(`kind in (${kinds.map(kind => `'${kind}'`).join(', ')})`);
