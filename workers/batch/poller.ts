import { failureLevel } from '../../shared/database/failure-level.ts';
import { abortable, sleep } from '../../shared/process/abort.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import type { WorkerContext } from '../context.ts';
import { readFollowed } from './followed-jobs.ts';
import { HostMemory } from './host-memory.ts';
import { type AccountLimits, pollAccount } from './poll-account.ts';
import { endPoll, type HostPoll, passPoll, takePolls } from './polls.ts';

/** Milliseconds between two looks for hosts that are to be polled. */
const ROUND_MS = 1_000;
/** Limit of milliseconds for one account: its files, one query of its batch system, and one call that ends jobs. */
const ACCOUNT_MS = 200_000;
/** The next poll of a host waits at most this long for accounts that do not answer. */
const SLOW_ACCOUNTS_MS = 10_000;

type Context = Pick<
  WorkerContext,
  'id' | 'database' | 'sessions' | 'notifications' | 'freeSpace' | 'log' | 'stopping'
> & { limits: PollLimits; hosts: Map<string, HostMemory> };

export interface PollLimits extends AccountLimits {
  /** Jobs of a host in one poll. */
  jobs: number;
}
const LIMITS: PollLimits = { jobs: 5_000, unreachablePolls: 17_280, cancelSeconds: 60 };

/**
 * Asks each host for all of its batch jobs at once, at most every 5 s over all workers, so that waiting jobs hold no
 * slot. What a job needs done is done by the worker that is given the job.
 */
export async function pollBatchHosts(
  given: Omit<Context, 'limits' | 'hosts'>,
  limits: Partial<PollLimits> = {},
): Promise<void> {
  const context: Context = { ...given, limits: { ...LIMITS, ...limits }, hosts: new Map() };
  const { database, stopping, log, id } = context;
  while (!stopping.aborted) {
    const taken = await takePolls(database.db, id).catch((err: unknown) => {
      log[failureLevel(err)]({ err }, 'hosts with batch jobs could not be polled');
      return [];
    });
    for (const poll of taken)
      void pollHost(context, poll).catch((err: unknown) =>
        log.info({ err, host: poll.hostname }, 'the batch jobs of a host could not be polled'),
      );
    await sleep(stopping, ROUND_MS);
  }
}

async function pollHost(context: Context, { hostname, turn: latest }: HostPoll): Promise<void> {
  const { database, hosts, limits, log, stopping } = context;
  const memory = hosts.get(hostname) ?? new HostMemory();
  const { cursors, unreachable, underWay } = memory;
  const turn = memory.turn ?? latest;
  const rows = await readFollowed(context, { hostname, cursors, turn, most: limits.jobs });
  if (rows.length === 0) {
    hosts.delete(hostname);
    return passPoll(database.db, hostname);
  }
  hosts.set(hostname, memory);
  const { accounts, asking } = memory.plan(rows, { turn, isFull: rows.length >= limits.jobs });
  const polls = accounts.map(async ([name, own]) => {
    underWay.add(name);
    await limitTime(stopping, ACCOUNT_MS, signal =>
      pollAccount(context, own, { name, asks: name === asking, unreachable, signal }),
    )
      .catch((err: unknown) => log.info({ err, host: hostname }, 'batch jobs could not be polled'))
      .finally(() => underWay.delete(name));
  });
  await limitTime(stopping, SLOW_ACCOUNTS_MS, signal =>
    abortable(Promise.all(polls), signal),
  ).catch(() => {});
  await endPoll(database.db, { hostname, turn: asking });
}
