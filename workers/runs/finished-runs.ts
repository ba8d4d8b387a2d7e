import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { jobs } from '../../shared/database/schema.ts';
import type { AgentClient } from '../host-agent/client.ts';

type Agent = Pick<AgentClient, 'list' | 'stop' | 'forgetAll'>;

/** A run whose job has ended, and which may be on its host yet. */
export interface FinishedRun {
  id: string;
  /** Nobody wants its end: what mayRunOn says of its job. */
  mayRunOn: boolean;
}

/**
 * Of a job that has ended: whether its run, should it live, is left to run. That is what `outcome_unknown` tells its
 * user, of a command that nobody cancelled, until its time is up. Whatever else a job ends with says that nothing of it
 * runs any more.
 *
 * limitSeconds: LIMIT_COMMAND_SECONDS; 0 is none.
 */
export function mayRunOn(limitSeconds: number): SQL<boolean> {
  const inTime =
    limitSeconds > 0
      ? sql`${jobs.runAt} > now() - make_interval(secs => ${limitSeconds})`
      : undefined;
  const isLeft = and(
    eq(jobs.kind, 'command'),
    isNull(jobs.cancelRequested),
    sql`${jobs.error} ->> 'code' = 'outcome_unknown'`,
    inTime,
  );
  return sql<boolean>`coalesce(${isLeft}, false)`;
}

/**
 * Stops runs that must not go on, and whatever is left of lost ones (once their record is gone nobody could find them);
 * then removes every ended run from the host. `states` is the agent's list and must contain each run that may go on.
 * Returns the runs that stay because they are alive.
 */
export async function removeFinished(
  agent: Agent,
  runs: FinishedRun[],
  states: ReadonlyMap<string, string>,
): Promise<string[]> {
  const kept: string[] = [];
  const over: string[] = [];
  for (const run of runs) (await mayGo(agent, run, states)) ? over.push(run.id) : kept.push(run.id);
  return [...kept, ...(await agent.forgetAll(over))];
}

async function mayGo(
  agent: Agent,
  { id, mayRunOn }: FinishedRun,
  states: ReadonlyMap<string, string>,
): Promise<boolean> {
  const state = states.get(id);
  if (state === 'ended' || state === 'stopped') return true;
  if (mayRunOn && state !== 'lost') return state !== 'running';
  return (await agent.stop(id)).how !== 'left';
}

/** What the agent lists of these. */
export async function findStates(agent: Agent, ids: string[]): Promise<Map<string, string>> {
  const states = new Map<string, string>();
  for await (const runs of agent.list())
    for (const { id, state } of runs) if (ids.includes(id)) states.set(id, state);
  return states;
}
