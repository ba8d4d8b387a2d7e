import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { OpenJobCounts } from '../../api/jobs/requests/open-job-counts.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { sessions } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import { JobQueues, toQueueEntry } from '../../shared/jobs/queue.ts';
import { startJobInSession } from '../../shared/jobs/start-job-in-session.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import type { Handler, WorkerContext } from '../../workers/context.ts';
import { consumeQueues } from '../../workers/engine/consume-queues.ts';
import { runDispatcher } from '../../workers/engine/dispatcher.ts';
import { startHeartbeat } from '../../workers/engine/heartbeat.ts';
import { HeldClaims } from '../../workers/engine/held-claims.ts';
import { JobGroups } from '../../workers/engine/job-groups.ts';
import { renewLease } from '../../workers/engine/leases.ts';
import { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import type { SessionPool } from '../../workers/ssh/session-pool.ts';
import { type Contender, PAYLOAD, type Servers } from './contender.ts';

const OWNER = 'bench';
const DAY_MS = 86_400_000;
const config = readConfig({ DATABASE_URL: 'postgres://unused' });
const log = createLog({ level: 'warn', name: 'bench', secrets: [] });

/** `redisUrl` in the fleet form only. */
type BackingServers = Pick<Servers, 'databaseUrl'> & Partial<Servers>;

/** What the API does for a command: a row, then an entry or a notification. */
export async function openWindlass({ databaseUrl, redisUrl }: BackingServers): Promise<Contender> {
  const database = openDatabase(databaseUrl, { max: 20 });
  const notifications = new Notifications(database, log);
  const queues = new JobQueues({ databaseUrl, redisUrl, log });
  const openJobs = new OpenJobCounts(config.LIMIT_OPEN_JOBS);
  const sid = newId();
  const times = { opened: new Date(), accessed: new Date(Date.now() + DAY_MS) };
  await database.db
    .insert(sessions)
    .values({ sid, owner: OWNER, hostname: 'bench', username: 'bench', agent: true, ...times });
  return {
    accept: async () => {
      const job = await startJobInSession(
        database,
        {
          kind: 'command',
          owner: OWNER,
          session: sid,
          payload: PAYLOAD,
          limit: openJobs.nextLimit(OWNER),
          onCount: open => openJobs.counted(OWNER, open),
          share: config.LIMIT_SHARE,
        },
        config.SESSION_IDLE_TIMEOUT,
      );
      if (!job) throw new Error('it was not accepted');
      if (job.dispatched) queues.add('remote', [toQueueEntry(job)]).catch(() => {});
      else notifications.publish('waiting', 'remote');
    },
    isDrained: async () => {
      const [row] = await database.sql`
        select not exists(select from jobs where owner = ${OWNER} and finished is null) as drained`;
      return row?.drained;
    },
    close: async () => {
      await Promise.all([queues.close(), notifications.close()]);
      await database.close();
    },
  };
}

/** What a process of workers does. */
export interface Work {
  /** In this process; default 1. */
  workers?: number;
  /** Of each worker; default REMOTE_SLOTS. */
  slots?: number;
  /** How long a command waits, as for its host; default 0. */
  commandMs?: number;
}

/** Workers as workers/main.ts has them, whose commands do nothing. */
export async function workForWindlass(
  servers: BackingServers,
  { workers = 1, slots = config.REMOTE_SLOTS, commandMs = 0 }: Work = {},
): Promise<void> {
  const wait: Handler<'command'> = async () => {
    if (commandMs > 0) await delay(commandMs);
    return { result: { returncode: 0 } };
  };
  for (let n = 0; n < workers; n++) await startWorker(servers, slots, wait);
}

async function startWorker(
  { databaseUrl, redisUrl }: BackingServers,
  remote: number,
  command: Handler<'command'>,
): Promise<void> {
  const database = openDatabase(databaseUrl, { usual: 2 });
  const notifications = new Notifications(database, log);
  await notifications.listen();
  const metrics = new WorkerMetrics();
  const id = `bench/${process.pid}/${newId().slice(-6)}`;
  const stop = new AbortController();
  // Each job that runs listens to it.
  setMaxListeners(0, stop.signal);
  const context: WorkerContext = {
    id,
    config,
    log,
    database,
    notifications,
    metrics,
    claims: new HeldClaims({ id, database, notifications, log, metrics }),
    groups: new JobGroups({ id, database, notifications }),
    sessions: { has: () => true } as unknown as SessionPool,
    finishedRuns: undefined as never,
    objects: undefined as never,
    freeSpace: undefined as never,
    queues: new JobQueues({ databaseUrl, redisUrl, log, direct: database.direct }),
    stopping: stop.signal,
  };
  const slots = { remote };
  consumeQueues(context, slots, new Map([['command', command as Handler<JobKind>]]));
  await renewLease(database.db, id, []);
  await startHeartbeat(context, { slots, upkeep: true, onDraining: () => {} });
  void runDispatcher(context);
}
