import { sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { BatchState } from '../../shared/jobs/payloads/batch.ts';
import { nothingLeft } from '../../shared/jobs/run-intent.ts';
import type { WorkerContext } from '../context.ts';
import { applyPoll, type Followed } from './apply-poll.ts';
import type { Statuses } from './engine.ts';
import { endUnwanted, engineOf, type Submitted, toAsk, toUnended } from './engine-requests.ts';
import type { FollowedRow } from './followed-jobs.ts';
import { LoginNode } from './login-node.ts';
import { writeChanges } from './write-changes.ts';

/** Limit of submissions in one request to the host. */
const MAX_FILES = 500;
/** The ended jobs that one poll removes: a batch system may take long to end many. */
const MAX_ENDED = 100;

export interface AccountLimits {
  /** Polls in a row, over a day or more, after which an account's home that all found unreachable counts as removed. */
  unreachablePolls: number;
  /** The time in one poll for ending jobs there: the batch system may hang. */
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
    const open = rows.flatMap(row => (row.finished || !row.batch ? [] : [toFollowed(row)]));
    const ended = rows.filter(row => row.finished).slice(0, MAX_ENDED);
    const unended = ended.flatMap(toUnended);
    const statuses = await pollOpen(context, node, { open, unended, asks });
    // Last: nothing waits for it, and a batch system may take long to end many.
    const unwanted = [...open.filter(({ batch }) => batch.isUnwanted), ...unended];
    await endUnwanted(node, { unwanted, statuses, seconds: context.limits.cancelSeconds });
    if (ended.length === 0) return void unreachable.delete(name);
    const polls = (unreachable.get(name) ?? 0) + 1;
    const isForgone = polls >= context.limits.unreachablePolls;
    if (await removeEnded(context, node, { ended, isForgone })) unreachable.delete(name);
    else unreachable.set(name, polls);
  });
}

/** Looks at the open jobs. Returns what the batch system said of all, if it was asked. */
async function pollOpen(
  context: AccountContext,
  node: LoginNode,
  { open, unended, asks }: { open: Followed[]; unended: Submitted[]; asks: boolean },
): Promise<Statuses | undefined> {
  const engine = engineOf([...open, ...unended]);
  const asked = toAsk(open, unended, asks);
  let statuses: Statuses | undefined;
  for (let at = 0; at < open.length || (at === 0 && asked); at += MAX_FILES) {
    const some = open.slice(at, at + MAX_FILES);
    // All of them in the first request.
    const poll = await node.poll(
      some.map(({ directory }) => directory),
      engine,
      at === 0 ? asked : undefined,
    );
    statuses ??= poll.statuses;
    const polled = at === 0 ? open : some;
    const hasRoom = await context.freeSpace.assertFree().then(
      () => true,
      () => false,
    );
    const changes = polled.flatMap(job => {
      const change = applyPoll(job, poll, { hasRoom });
      if (!change) return [];
      // Later requests of this poll have no status.
      job.batch = change.batch;
      if (change.runs) job.state = 'running';
      return [[job.id, change] as const];
    });
    await writeChanges(context, Object.fromEntries(changes));
  }
  return statuses;
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
 * Removes what ended jobs left on their host. False if the home is unreachable: a job in it may yet begin when it comes back,
 * unless it `isForgone`.
 */
async function removeEnded(
  { database }: AccountContext,
  node: LoginNode,
  { ended, isForgone }: { ended: FollowedRow[]; isForgone: boolean },
): Promise<boolean> {
  // For an unknown outcome the files are the only evidence, so they stay.
  const removed = await node.remove(
    ended.map(({ id, isUnknown, directory }) =>
      isUnknown && directory ? { job: id, kept: directory } : { job: id },
    ),
  );
  const done = ended.map(({ id }) => id).filter(id => isForgone || removed?.includes(id));
  if (done.length > 0)
    await database.db
      .update(jobs)
      .set(nothingLeft)
      .where(sql`${jobs.id} = ${anyOf(done)}`);
  return removed !== undefined;
}
