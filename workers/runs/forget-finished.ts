import { and, inArray, isNotNull } from 'drizzle-orm';
import type { Config } from '../../shared/config.ts';
import type { Database } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { isId } from '../../shared/ids.ts';
import type { Logger } from '../../shared/log.ts';
import type { AgentClient } from '../host-agent/client.ts';
import { mayRunOn, removeFinished } from './finished-runs.ts';

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
  config: Pick<Config, 'LIMIT_COMMAND_SECONDS'>;
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
      .then(agent => forgetFinished(agent, context))
      .catch((error: unknown) =>
        context.log.info({ err: error }, 'old runs are removed from their host later'),
      );
  }, context.delayMs ?? DELAY_MS);
  timer.unref();
  void connection.closed.then(() => clearTimeout(timer));
}

export async function forgetFinished(
  agent: Agent,
  { config, database: { db } }: Pick<Context, 'config' | 'database'>,
): Promise<void> {
  for await (const listed of agent.list()) {
    const states = new Map(listed.map(run => [run.id, run.state]));
    const ids = [...states.keys()].filter(isId);
    for (let n = 0; n < ids.length; n += MOST) {
      const over = await db
        .select({ id: jobs.id, mayRunOn: mayRunOn(config.LIMIT_COMMAND_SECONDS) })
        .from(jobs)
        .where(and(inArray(jobs.id, ids.slice(n, n + MOST)), isNotNull(jobs.finished)));
      await removeFinished(agent, over, states);
    }
  }
}
