import { and, asc, eq, or, sql } from 'drizzle-orm';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { anyOf } from '../../shared/jobs/job-conditions.ts';
import type { BatchState, EngineName } from '../../shared/jobs/payloads/batch.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';
import { applyPoll, type Change, type Followed } from './apply-poll.ts';
import { LoginNode } from './login-node.ts';
import { endPoll, type HostPoll, isFollowed, passPoll, takePolls } from './polls.ts';

const ROUND_MS = 1_000;
/** For one account: its files, and one call of its batch system. */
const ACCOUNT_MS = 150_000;
/** Jobs of a host in one poll. */
const MOST_JOBS = 5_000;
/** In one request to the host. */
const MOST_FILES = 500;
/** Of these, jobs that have ended and are removed: each may be one call of the batch system. */
const MOST_ENDED = 100;

type Context = Pick<
  WorkerContext,
  'id' | 'database' | 'sessions' | 'notifications' | 'log' | 'stopping'
> & {
  /** By host: the account that this worker has asked for last. Another worker may have other accounts, and takes turns with this one. */
  turns: Map<string, string>;
};
type Row = Awaited<ReturnType<typeof readJobs>>[number];

/**
 * Asks each host that has batch jobs for all of them at once, at most every 5 s over all workers, so that they hold no slot
 * while they wait. What is to be done for one of them a worker does that is given the job.
 */
export async function pollBatchHosts(given: Omit<Context, 'turns'>): Promise<void> {
  const context = { ...given, turns: new Map<string, string>() };
  const { database, stopping, log, id } = context;
  while (!stopping.aborted) {
    const taken = await takePolls(database.db, id).catch((err: unknown) => {
      log.debug({ err }, 'hosts with batch jobs could not be polled');
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
  const { turns } = context;
  const { db } = context.database;
  const rows = await readJobs(context, hostname);
  if (rows.length === 0) {
    turns.delete(hostname);
    return passPoll(db, hostname);
  }
  const accounts = new Map<string, Row[]>();
  for (const row of rows) {
    const account = `${row.username} ${row.owner}`;
    accounts.set(account, [...(accounts.get(account) ?? []), row]);
  }
  const names = [...accounts.keys()].sort();
  // The batch system is asked once in a poll, by one account after another.
  const turn = turns.get(hostname) ?? latest;
  const next = names.find(name => name > turn) ?? names[0] ?? '';
  turns.set(hostname, next);
  try {
    await Promise.allSettled(
      [...accounts].map(([name, own]) =>
        pollAccount(context, own, { asks: name === next }).catch((err: unknown) =>
          context.log.info({ err, host: hostname }, 'batch jobs could not be polled'),
        ),
      ),
    );
  } finally {
    await endPoll(db, { hostname, turn: next });
  }
}

/** What is open, and what has ended and has left its files on the host. */
async function readJobs({ database, id }: Context, hostname: string) {
  return database.db
    .select({
      id: jobs.id,
      session: sessions.sid,
      owner: jobs.owner,
      username: sessions.username,
      folder: jobs.runPlace,
      batch: jobs.batch,
      state: jobs.state,
      finished: jobs.finished,
      stdout: jobs.stdoutBytes,
      stderr: jobs.stderrBytes,
      isUnknown: sql<boolean>`coalesce(${jobs.error} ->> 'code' = 'outcome_unknown', false)`,
    })
    .from(jobs)
    .innerJoin(sessions, eq(sessions.sid, jobs.session))
    .where(
      and(
        eq(sessions.hostname, hostname),
        isFollowed,
        // Of a session that its user logged in to with a code, one worker has the only connection.
        or(eq(sessions.interactive, false), eq(sessions.holder, id)),
      ),
    )
    .orderBy(asc(jobs.id))
    .limit(MOST_JOBS);
}

/** All jobs of one account, over the connection of one of their sessions. */
async function pollAccount(
  context: Context,
  rows: Row[],
  { asks }: { asks: boolean },
): Promise<void> {
  const signal = AbortSignal.any([context.stopping, AbortSignal.timeout(ACCOUNT_MS)]);
  const open = rows.flatMap(row => (row.finished || !row.batch ? [] : [toFollowed(row)]));
  const sid = await chooseSession(context, rows);
  if (sid === undefined) return;
  await context.sessions.use(sid, signal, async session => {
    const node = new LoginNode(session, signal);
    for (let at = 0; at < open.length; at += MOST_FILES) {
      const some = open.slice(at, at + MOST_FILES);
      const engine: EngineName = some[0]?.batch.engine ?? 'slurm';
      // All of them in the first request.
      const ids = asks && at === 0 ? open.flatMap(({ batch }) => batch.id ?? []) : [];
      const poll = await node.poll(
        some.map(({ folder }) => folder),
        engine,
        ids,
      );
      const asked = at === 0 ? open : some;
      const changes = asked.flatMap(job => {
        const change = applyPoll(job, poll);
        if (!change) return [];
        // The next requests of this poll know of no status.
        job.batch = change.batch;
        if (change.runs) job.state = 'running';
        return [[job.id, change] as const];
      });
      await write(context, Object.fromEntries(changes));
    }
    // Last: nothing waits for it, and a batch system may take long to end many.
    const ended = rows.filter(row => row.finished).slice(0, MOST_ENDED);
    if (ended.length > 0) await removeEnded(context, node, ended);
  });
}

/**
 * Of open jobs first. With a credential that its host has refused once, no login is made for what has ended; for an open job one
 * may be, as the job itself makes it: the host may take it again.
 */
async function chooseSession({ sessions }: Context, rows: Row[]): Promise<string | undefined> {
  const open = rows.filter(row => !row.finished);
  for (const sid of new Set([...open, ...rows].map(row => row.session)))
    if (await sessions.mayUse(sid)) return sid;
  return open[0]?.session;
}

const toFollowed = (row: Row): Followed => ({
  id: row.id,
  folder: row.folder ?? '',
  batch: row.batch as BatchState,
  state: row.state,
  stored: { stdout: row.stdout, stderr: row.stderr },
});

/** Of jobs that no worker has at this moment. */
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
      batch = change.value -> 'batch',
      state = case when (change.value ->> 'runs')::boolean then 'running' else state end,
      started = case when (change.value ->> 'runs')::boolean then coalesce(started, now()) else started end,
      not_before = case when (change.value ->> 'wakes')::boolean then now() else not_before end,
      version = version + 1
    from jsonb_each(${JSON.stringify(changes)}::jsonb) change
    where ${jobs.id} = any(array(${free})) and ${jobs.id} = change.key and run_place = change.value ->> 'folder'
    returning ${jobs.id}`);
  for (const { id } of written) notifications.publish('job', id);
  if (ids.some(id => changes[id]?.wakes)) notifications.publish('waiting', 'remote');
}

/** Removes what ended jobs have left on their host. What did not end well is ended there first. */
async function removeEnded({ database }: Context, node: LoginNode, ended: Row[]): Promise<void> {
  // Of an unknown outcome the files say more than nothing: they stay.
  const gone = ended.filter(row => !row.isUnknown);
  const unended = gone.flatMap(({ state, folder, batch }) =>
    state === 'succeeded' || !folder || !batch ? [] : [{ ...batch, name: folder }],
  );
  const ids = gone.map(row => row.id);
  const isRemoved = gone.length === 0 || (await node.remove(ids, unended));
  // Where the folder is away it may come back; after a day its user has removed it.
  const isDue = isRemoved ? undefined : sql`${jobs.finished} < now() - interval '1 day'`;
  await database.db
    .update(jobs)
    .set({ runRemoved: true })
    .where(and(sql`${jobs.id} = ${anyOf(ended.map(row => row.id))}`, isDue));
}
