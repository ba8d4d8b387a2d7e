import { and, inArray, isNotNull, isNull, notInArray, type SQL, sql } from 'drizzle-orm';
import { type PgColumn, unionAll } from 'drizzle-orm/pg-core';
import type { Database, Db } from '../../shared/database/connect.ts';
import { jobs, leftoverRuns } from '../../shared/database/schema.ts';
import { isId } from '../../shared/ids.ts';
import { KINDS_THAT_RUN_ONCE, KINDS_WITH_SUBMISSIONS } from '../../shared/jobs/catalog.ts';
import { mayBeRunOf, nothingLeft } from '../../shared/jobs/run-intent.ts';
import type { AgentClient } from '../host-agent/client.ts';
import type { ListedRun, ListedStates } from '../host-agent/protocol/run-lists.ts';

/** Ids in one query, and in one request to the agent, which passes them as arguments. */
export const BATCH = 50;

/** A home that is not the run's counts as the only one when the host was asked for so long: it was moved or made anew. */
const ELSEWHERE_MS = 7 * 86_400_000;

export type Agent = Pick<AgentClient, 'hello' | 'list' | 'stop' | 'forgetAll'>;

/** A run whose job has ended and whose record may still be on its host. */
export interface FinishedRun {
  id: string;
  /** Its process is not stopped; see mayKeepRunning(). */
  mayKeepRunning: boolean;
  runAt: Date | null;
  /** Null where it is not known. */
  runPlace: string | null;
}

/**
 * Whether the process of an ended job may keep running: only after `outcome_unknown`, without a cancel, within the time
 * limit, because its user was told that it may. limitSeconds: LIMIT_COMMAND_SECONDS; 0 means none.
 */
function mayKeepRunning(limitSeconds: number) {
  const isUnknown = and(
    inArray(jobs.kind, KINDS_THAT_RUN_ONCE),
    isNull(jobs.cancelRequested),
    sql`${jobs.error} ->> 'code' = 'outcome_unknown'`,
    isInTime(jobs.runAt, limitSeconds),
  );
  return sql<boolean>`coalesce(${isUnknown}, false)`.as('may_keep_running');
}

const isInTime = (runAt: PgColumn, limitSeconds: number) =>
  limitSeconds > 0 ? sql`${runAt} > now() - make_interval(secs => ${limitSeconds})` : sql`true`;

/** The finished runs that these conditions select: those of ended jobs, and leftovers of removed jobs. */
export function selectFinishedRuns(
  db: Db,
  limitSeconds: number,
  where: { jobs?: SQL; leftoverRuns?: SQL },
) {
  return unionAll(
    db
      .select({
        id: jobs.id,
        session: jobs.session,
        runAt: jobs.runAt,
        runPlace: jobs.runPlace,
        mayKeepRunning: mayKeepRunning(limitSeconds),
      })
      .from(jobs)
      .where(
        and(isNotNull(jobs.finished), notInArray(jobs.kind, KINDS_WITH_SUBMISSIONS), where.jobs),
      ),
    db
      .select({
        id: leftoverRuns.id,
        session: leftoverRuns.session,
        runAt: sql<Date | null>`${leftoverRuns.runAt}`,
        runPlace: sql<string | null>`null::text`,
        mayKeepRunning: sql<boolean>`(${leftoverRuns.mayKeepRunning} and ${isInTime(leftoverRuns.runAt, limitSeconds)})`,
      })
      .from(leftoverRuns)
      .where(where.leftoverRuns),
  );
}

/**
 * Records that these runs are no longer on their host, and returns whether it did: a home that is not a run's own tells
 * nothing of it, and the run may live on in that.
 */
export async function recordRemoval(
  db: Db,
  { hello }: Pick<Agent, 'hello'>,
  runs: FinishedRun[],
): Promise<boolean> {
  const known = runs.filter(run => mayBeRunOf(run, hello.fences) || isLongAgo(run));
  const ids = known.map(({ id }) => id);
  if (ids.length === 0) return false;
  // In this order: a job removed in between has become a leftover run.
  await db.update(jobs).set(nothingLeft).where(inArray(jobs.id, ids));
  await db.delete(leftoverRuns).where(inArray(leftoverRuns.id, ids));
  return ids.length === runs.length;
}

const isLongAgo = ({ runAt }: FinishedRun) =>
  runAt === null || Date.now() - runAt.getTime() > ELSEWHERE_MS;

/**
 * The one rule for removal: stops the runs that may not keep running, and the processes of lost runs, which nobody
 * could find later; then removes the records of ended runs. Returns the ids of runs still alive.
 *
 * states: the agent's list; contains every run that may keep running.
 */
export async function removeFinishedRuns(
  agent: Agent,
  runs: FinishedRun[],
  states: ListedStates,
): Promise<string[]> {
  const alive: string[] = [];
  const ended: string[] = [];
  for (const run of runs)
    ((await isOrGetsStopped(agent, run, states)) ? ended : alive).push(run.id);
  return [...alive, ...(await agent.forgetAll(ended))];
}

async function isOrGetsStopped(
  agent: Agent,
  run: FinishedRun,
  states: ListedStates,
): Promise<boolean> {
  const state = states.get(run.id);
  if (state === 'ended' || state === 'stopped') return true;
  if (run.mayKeepRunning && state !== 'lost') return state !== 'running';
  return (await agent.stop(run.id)).result !== 'survivors';
}

/**
 * Removes the account's runs whose job has ended in the database. A run that a job may still ask for stays at any age;
 * so does an unknown id, because other services may use the account.
 */
export async function removeListedRuns(
  agent: Agent,
  { database, limitSeconds }: { database: Pick<Database, 'db'>; limitSeconds: number },
): Promise<void> {
  for await (const listed of agent.list()) {
    const states = new Map(listed.map(run => [run.id, run.state]));
    const ids = [...states.keys()].filter(isId);
    for (let n = 0; n < ids.length; n += BATCH) {
      const some = ids.slice(n, n + BATCH);
      const finished = await selectFinishedRuns(database.db, limitSeconds, {
        jobs: inArray(jobs.id, some),
        leftoverRuns: inArray(leftoverRuns.id, some),
      });
      const alive = await removeFinishedRuns(agent, finished, states);
      const removed = finished.filter(run => !alive.includes(run.id));
      await recordRemoval(database.db, agent, removed);
    }
  }
}

/** The states that the agent lists for these ids. */
export async function listStates(agent: Agent, ids: string[]): Promise<ListedStates> {
  const states = new Map<string, ListedRun['state']>();
  for await (const runs of agent.list())
    for (const { id, state } of runs) if (ids.includes(id)) states.set(id, state);
  return states;
}
