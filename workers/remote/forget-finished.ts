import { and, inArray, isNotNull } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { isId } from '../../shared/ids.ts';
import type { Logger } from '../../shared/log.ts';
import type { AgentClient } from './agent/client.ts';

/** The first commands of a connection have the host for themselves. */
const DELAY_MS = 5_000;
/** Ids of one query, and of one line to the agent. */
const MOST = 50;

type Agent = Pick<AgentClient, 'list' | 'stop' | 'forgetAll'>;

/** Where the agent of a connection is to be had, as of RemoteSession. */
interface Connection {
  agent(): Promise<Agent>;
  readonly closed: Promise<void>;
}

interface Context {
  database: Pick<Database, 'db'>;
  log: Logger;
  /** Milliseconds before the first request. */
  delayMs?: number;
}

/**
 * Removes from the account, soon after a connection to it was made, each run whose job has ended here: what was left
 * because its session's credential is erased, for instance. The database alone decides, never a clock: a run that a job
 * may still ask for stays, however old, and so does one that is unknown here, as other services may use the account.
 * Never fails: the next connection tries again.
 */
export function forgetFinishedSoon(connection: Connection, context: Context): void {
  const timer = setTimeout(() => {
    connection
      .agent()
      .then(agent => forgetFinished(agent, context.database))
      .catch((error: unknown) =>
        context.log.info({ err: error }, 'old runs are removed from their host later'),
      );
  }, context.delayMs ?? DELAY_MS);
  timer.unref();
  void connection.closed.then(() => clearTimeout(timer));
}

export async function forgetFinished(agent: Agent, { db }: Pick<Database, 'db'>): Promise<void> {
  const runs = (await agent.list()).filter(run => isId(run.id));
  for (let n = 0; n < runs.length; n += MOST) {
    const some = runs.slice(n, n + MOST);
    const ids = some.map(run => run.id);
    const over = await db
      .select({ id: jobs.id, cancelled: isNotNull(jobs.cancelRequested) })
      .from(jobs)
      .where(and(inArray(jobs.id, ids), isNotNull(jobs.finished)));
    for (const { id, cancelled } of over) {
      const state = some.find(run => run.id === id)?.state;
      // Cancelled while the host could not be reached; what nobody cancelled runs on, and is kept until it ends. Of a lost
      // one nobody will know the end, and once it is forgotten nobody could find what is left of it.
      if (state === 'lost' || (cancelled && state === 'running')) await agent.stop(id);
    }
    await agent.forgetAll(over.map(job => job.id));
  }
}
