import { sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { BatchState, EngineName } from '../../shared/jobs/payloads/batch.ts';
import { nothingLeft } from '../../shared/jobs/run-intent.ts';
import type { WorkerContext } from '../context.ts';
import { applyPoll, type Followed } from './apply-poll.ts';
import type { FollowedRow } from './followed-jobs.ts';
import { LoginNode, type Removal } from './login-node.ts';
import { writeChanges } from './write-changes.ts';

/** Limit of submissions in one request to the host. */
const MAX_FILES = 500;
/** The ended jobs that one poll removes: each may cost a call of the batch system. */
const MAX_ENDED = 100;

export interface AccountLimits {
  /** Polls in a row, over a day or more, after which an account's home that all found unreachable counts as removed. */
  unreachablePolls: number;
  /** The time in one poll for ending jobs that ended here but not there: the batch system may hang. */
  cancelSeconds: number;
}

type AccountContext = Pick<
  WorkerContext,
  'database' | 'sessions' | 'notifications' | 'freeSpace'
> & { limits: AccountLimits };

/** All jobs of one account, over the connection of one of their sessions. */
export async function pollAccount(
  context: AccountContext,
  rows: FollowedRow[],
  given: { name: string; asks: boolean; unreachable: Map<string, number>; signal: AbortSignal },
): Promise<void> {
  const { name, asks, unreachable, signal } = given;
  const sid = await chooseSession(context, rows);
  if (sid === undefined) return;
  await context.sessions.use(sid, signal, async session => {
    const node = new LoginNode(session, signal);
    await pollOpen(context, node, { rows, asks });
    // Last: nothing waits for it, and a batch system may take long to end many.
    const ended = rows.filter(row => row.finished).slice(0, MAX_ENDED);
    if (ended.length === 0) return void unreachable.delete(name);
    const polls = (unreachable.get(name) ?? 0) + 1;
    const isForgone = polls >= context.limits.unreachablePolls;
    if (await removeEnded(context, node, { ended, isForgone })) unreachable.delete(name);
    else unreachable.set(name, polls);
  });
}

async function pollOpen(
  context: AccountContext,
  node: LoginNode,
  { rows, asks }: { rows: FollowedRow[]; asks: boolean },
): Promise<void> {
  const open = rows.flatMap(row => (row.finished || !row.batch ? [] : [toFollowed(row)]));
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
    await writeChanges(context, Object.fromEntries(changes));
  }
}

/**
 * Sessions of open jobs come first. A credential that its host has refused once is used for an open job only, as the
 * job itself would: the host may accept it again.
 */
async function chooseSession(
  { sessions }: AccountContext,
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

/**
 * Ends what did not end well, then removes what ended jobs left on their host. False if the home is unreachable: a job in it
 * may yet begin when it comes back, unless it `isForgone`.
 */
async function removeEnded(
  { database, limits }: AccountContext,
  node: LoginNode,
  { ended, isForgone }: { ended: FollowedRow[]; isForgone: boolean },
): Promise<boolean> {
  const removals = ended.map(({ id, isUnknown, state, directory, batch }): Removal => {
    // For an unknown outcome the files are the only evidence, so they stay.
    if (isUnknown) return { job: id, kept: directory ?? undefined };
    if (state === 'succeeded' || !directory || !batch) return { job: id };
    return { job: id, unended: { name: directory, batch } };
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
