import { sql } from 'drizzle-orm';
import { failureLevel } from '../../shared/database/failure-level.ts';
import { jobs } from '../../shared/database/schema.ts';
import { anyOf } from '../../shared/jobs/job-conditions.ts';
import type { BatchState, EngineName } from '../../shared/jobs/payloads/batch.ts';
import { nothingLeft } from '../../shared/jobs/run-intent.ts';
import { abortable, sleep } from '../../shared/process/abort.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import type { WorkerContext } from '../context.ts';
import { WAITING } from '../runs/await-disk.ts';
import { applyPoll, type Change, type Followed } from './apply-poll.ts';
import { accountOf, type Cursors, type FollowedRow, readFollowed } from './followed-jobs.ts';
import { LoginNode, type Removal } from './login-node.ts';
import { endPoll, type HostPoll, passPoll, takePolls } from './polls.ts';

/** Milliseconds between two looks for hosts that are to be polled. */
const ROUND_MS = 1_000;
/** Limit of milliseconds for one account: its files, and one call of its batch system. */
const ACCOUNT_MS = 150_000;
/** The next poll of a host waits at most this long for accounts that do not answer. */
const SLOW_ACCOUNTS_MS = 10_000;
/** Limit of submissions in one request to the host. */
const MAX_FILES = 500;
/** The ended jobs that one poll removes: each may cost a call of the batch system. */
const MAX_ENDED = 100;

type Context = Pick<
  WorkerContext,
  'id' | 'database' | 'sessions' | 'notifications' | 'freeSpace' | 'log' | 'stopping'
> & { limits: PollLimits; hosts: Map<string, HostMemory> };

export interface PollLimits {
  /** Jobs of a host in one poll. */
  jobs: number;
  /** Polls in a row, over a day or more, after which an account's home that all found away counts as removed. */
  awayPolls: number;
  /** The time in one poll for ending jobs that ended here but not there: the batch system may hang. */
  cancelSeconds: number;
}
const LIMITS: PollLimits = { jobs: 5_000, awayPolls: 17_280, cancelSeconds: 20 };

/** What this worker remembers of a host. */
interface HostMemory {
  /** The account that was asked last. Workers with other accounts take turns with this one. */
  turn?: string;
  cursors: Cursors;
  /** The polls in a row that found an account's home away, by account. */
  away: Map<string, number>;
  /** Accounts that an earlier poll is still asking. */
  underWay: Set<string>;
}

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
  const { hosts, limits } = context;
  const { db } = context.database;
  const memory: HostMemory = hosts.get(hostname) ?? {
    cursors: {},
    away: new Map(),
    underWay: new Set(),
  };
  const { cursors, away, underWay } = memory;
  const turn = memory.turn ?? latest;
  const rows = await readFollowed(context, { hostname, cursors, turn, most: limits.jobs });
  if (rows.length === 0) {
    hosts.delete(hostname);
    return passPoll(db, hostname);
  }
  hosts.set(hostname, memory);
  const accounts = new Map<string, FollowedRow[]>();
  for (const row of rows) {
    const own = accounts.get(accountOf(row));
    if (own) own.push(row);
    else accounts.set(accountOf(row), [row]);
  }
  for (const name of away.keys()) if (!accounts.has(name)) away.delete(name);
  const names = [...accounts.keys()].filter(name => !underWay.has(name)).sort();
  // The batch system is asked once in a poll, by one account after another.
  const next = names.find(name => name > turn) ?? names[0] ?? turn;
  memory.turn = next;
  if (rows.length < limits.jobs) memory.cursors = {};
  // Only for the account that asks: the batch system must be asked for each of its jobs.
  else if (names.includes(next)) cursors[next] = accounts.get(next)?.at(-1)?.id ?? '';
  const polls = names.map(async name => {
    underWay.add(name);
    await limitTime(context.stopping, ACCOUNT_MS, signal =>
      pollAccount(context, accounts.get(name) ?? [], { name, asks: name === next, away, signal }),
    )
      .catch((err: unknown) =>
        context.log.info({ err, host: hostname }, 'batch jobs could not be polled'),
      )
      .finally(() => underWay.delete(name));
  });
  await limitTime(context.stopping, SLOW_ACCOUNTS_MS, signal =>
    abortable(Promise.all(polls), signal),
  ).catch(() => {});
  await endPoll(db, { hostname, turn: next });
}

/** All jobs of one account, over the connection of one of their sessions. */
async function pollAccount(
  context: Context,
  rows: FollowedRow[],
  given: { name: string; asks: boolean; away: HostMemory['away']; signal: AbortSignal },
): Promise<void> {
  const { name, asks, away, signal } = given;
  const open = rows.flatMap(row => (row.finished || !row.batch ? [] : [toFollowed(row)]));
  const sid = await chooseSession(context, rows);
  if (sid === undefined) return;
  await context.sessions.use(sid, signal, async session => {
    const node = new LoginNode(session, signal);
    for (let at = 0; at < open.length; at += MAX_FILES) {
      const some = open.slice(at, at + MAX_FILES);
      const engine: EngineName = some[0]?.batch.engine ?? 'slurm';
      // All of them in the first request.
      const ids = asks && at === 0 ? open.flatMap(({ batch }) => batch.id ?? []) : [];
      const poll = await node.poll(
        some.map(({ directory }) => directory),
        engine,
        ids,
      );
      const asked = at === 0 ? open : some;
      const hasRoom = await context.freeSpace.assertFree().then(
        () => true,
        () => false,
      );
      const changes = asked.flatMap(job => {
        const change = applyPoll(job, poll, { hasRoom });
        if (!change) return [];
        // Later requests of this poll have no status.
        job.batch = change.batch;
        if (change.runs) job.state = 'running';
        return [[job.id, change] as const];
      });
      await write(context, Object.fromEntries(changes));
    }
    // Last: nothing waits for it, and a batch system may take long to end many.
    const ended = rows.filter(row => row.finished).slice(0, MAX_ENDED);
    if (ended.length === 0) return void away.delete(name);
    const polls = (away.get(name) ?? 0) + 1;
    const isForgone = polls >= context.limits.awayPolls;
    if (await removeEnded(context, node, { ended, isForgone })) away.delete(name);
    else away.set(name, polls);
  });
}

/**
 * Sessions of open jobs come first. A credential that its host has refused once is used for an open job only, as the
 * job itself would: the host may accept it again.
 */
async function chooseSession(
  { sessions }: Context,
  rows: FollowedRow[],
): Promise<string | undefined> {
  const open = rows.filter(row => !row.finished);
  for (const sid of new Set([...open, ...rows].map(row => row.session)))
    if (await sessions.mayUse(sid)) return sid;
  return open[0]?.session;
}

const toFollowed = (row: FollowedRow): Followed => ({
  id: row.id,
  directory: row.directory ?? '',
  batch: row.batch as BatchState,
  state: row.state,
  stored: { stdout: row.stdout, stderr: row.stderr },
});

/** Writes to jobs that no worker has now. An id that a visit has learnt since the poll began is kept. */
async function write(
  { database, notifications }: Context,
  changes: Record<string, Change>,
): Promise<void> {
  const ids = Object.keys(changes);
  if (ids.length === 0) return;
  const free = sql`select id from ${jobs} where id = ${anyOf(ids)} and num_nonnulls(finished, lease_token) = 0
    order by id for update skip locked`;
  const written = await database.db.execute<{ id: string }>(sql`
    update ${jobs} set
      batch = case when ${jobs.batch} ->> 'id' is not distinct from change.value #>> '{batch,id}'
        then change.value -> 'batch' else ${jobs.batch} end,
      state = case when (change.value ->> 'runs')::boolean then 'running' else state end,
      started = case when (change.value ->> 'runs')::boolean then coalesce(started, now()) else started end,
      not_before = case when (change.value ->> 'wakes')::boolean and message is distinct from ${WAITING}
        then now() else not_before end,
      version = version + 1
    from jsonb_each(${JSON.stringify(changes)}::jsonb) change
    where ${jobs.id} = any(array(${free})) and ${jobs.id} = change.key and run_place = change.value ->> 'directory'
    returning ${jobs.id}`);
  for (const { id } of written) notifications.publish('job', id);
  if (ids.some(id => changes[id]?.wakes)) notifications.publish('waiting', 'remote');
}

/**
 * Ends what did not end well, then removes what ended jobs left on their host. False if the home is away: a job in it
 * may yet begin when it comes back, unless it `isForgone`.
 */
async function removeEnded(
  { database, limits }: Context,
  node: LoginNode,
  { ended, isForgone }: { ended: FollowedRow[]; isForgone: boolean },
): Promise<boolean> {
  const removals = ended.map(({ id, isUnknown, state, directory, batch }): Removal => {
    // For an unknown outcome the files are the only evidence, so they stay.
    if (isUnknown) return { job: id, kept: directory ?? undefined };
    if (state === 'succeeded' || !directory || !batch) return { job: id };
    return { job: id, unended: { ...batch, name: directory } };
  });
  const removed = await node.remove(removals, limits.cancelSeconds);
  const done = ended.map(({ id }) => id).filter(id => isForgone || removed?.includes(id));
  if (done.length > 0)
    await database.db
      .update(jobs)
      .set(nothingLeft)
      .where(sql`${jobs.id} = ${anyOf(done)}`);
  return removed !== undefined;
}
