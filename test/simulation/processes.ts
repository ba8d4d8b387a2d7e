import { sql } from 'drizzle-orm';
import type { Notifications } from '../../shared/database/notifications.ts';
import { cancelJob } from '../../shared/jobs/cancel.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import { toQueueEntry } from '../../shared/jobs/queue.ts';
import { startJob } from '../../shared/jobs/start-job.ts';
import { startJobInSession } from '../../shared/jobs/start-job-in-session.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import type { Handler } from '../../workers/context.ts';
import { runDispatcher } from '../../workers/engine/dispatcher.ts';
import { startHeartbeat } from '../../workers/engine/heartbeat.ts';
import { HeldClaims } from '../../workers/engine/held-claims.ts';
import { renewLease } from '../../workers/engine/leases.ts';
import { runJob } from '../../workers/engine/run-job.ts';
import type { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import command from '../../workers/handlers/command.ts';
import type { FinishedRunRemover } from '../../workers/runs/finished-run-remover.ts';
import type { SessionPool } from '../../workers/ssh/session-pool.ts';
import { removeOldJobs } from '../../workers/upkeep/job-retention.ts';
import { makeWorkerContext } from '../harness/worker-context.ts';
import type { Actor } from './actor.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import type { SimulatedHost } from './simulated-host.ts';
import type { SimulatedQueue } from './simulated-queue.ts';

const config = { ...readConfig({ DATABASE_URL: 'postgres://simulated' }), JOB_RETENTION_DAYS: 1 };
const log = createLog({ level: 'silent', name: 'simulation', secrets: [] });
/** Hints are lost, all of them: rows are the truth. */
const notifications = {
  publish: () => {},
  publishSoon: () => {},
  on: () => () => {},
  onMissed: () => {},
  withdraw: () => {},
  withCommit: <T>(commit: (notifies: boolean) => Promise<T>) => commit(false),
} as unknown as Notifications;
const metrics = new Proxy({} as WorkerMetrics, {
  get: (_target, name) => (name === 'report' ? async () => ({}) : () => {}),
});
/** How long a connection to a host lasts until it is made anew. */
const CONNECTION_MS = 20_000;

/** Its work becomes visible with its end, and only then. */
const promoting: Handler<'parse'> = async ({ job, assertLeased }) => {
  await assertLeased();
  return {
    result: { artifacts: [], count: 0, files: [] },
    promote: async tx => {
      await tx.execute(sql`insert into sim.promoted values (${job.id})`);
    },
  };
};
const handlers = new Map<JobKind, Handler<JobKind>>([
  ['command', command as Handler<JobKind>],
  ['parse', promoting as Handler<JobKind>],
]);

interface Surroundings {
  database: SimulatedDatabase;
  queue: SimulatedQueue;
  host: SimulatedHost;
}

function makeContext(actor: Actor, { database, queue, host }: Surroundings) {
  let connectedAt = Number.NEGATIVE_INFINITY;
  const sessions = {
    has: () => true,
    find: () => undefined,
    hasAgent: async (sid: string) => sid.endsWith('agent'),
    use: async (_sid: string, signal: AbortSignal, work: (session: object) => Promise<unknown>) => {
      signal.throwIfAborted();
      if (performance.now() - connectedAt > CONNECTION_MS) connectedAt = performance.now();
      try {
        return await work(host.connect(actor, connectedAt));
      } catch (error) {
        connectedAt = Number.NEGATIVE_INFINITY;
        throw error;
      }
    },
  };
  return makeWorkerContext({
    id: actor.name,
    config,
    log,
    notifications,
    metrics,
    sessions: sessions as unknown as SessionPool,
    finishedRuns: { removeSoon: () => {} } as unknown as FinishedRunRemover,
    database: database.database,
    queues: queue.queues,
  });
}

/** A worker process as main.ts has it, without its connection to the queue: the schedule gives it entries. */
export function startWorker(actor: Actor, around: Surroundings, onFailedStart: () => void) {
  const context = makeContext(actor, around);
  context.claims = new HeldClaims(context);
  const ready = (async () => {
    await renewLease(context.database.db, context.id, []);
    await startHeartbeat(context, {
      slots: { remote: 2, parse: 1 },
      upkeep: true,
      onDraining: () => {},
    });
  })();
  ready.catch(onFailedStart);
  return async (entry: Parameters<typeof runJob>[1]) => {
    await runJob(context, entry, handlers);
    around.queue.done(entry, actor);
  };
}

/** Fewer than the product's: a schedule has room for few rounds of the dispatcher. */
const LOOKS = 2;

export function startDispatcher(actor: Actor, around: Surroundings): void {
  const context = makeContext(actor, around);
  void runDispatcher(context, { looks: LOOKS });
}

export interface JobToStart {
  name: string;
  owner: string;
  kind: 'agent' | 'plain' | 'parse';
}

/** What the API does for a request that starts a job. */
export async function start(
  actor: Actor,
  around: Surroundings,
  { name, owner, kind }: JobToStart,
): Promise<void> {
  const { database, queues } = makeContext(actor, around);
  const begin = async () => {
    if (kind === 'parse') {
      const request = {
        kind,
        owner,
        payload: { upload: name },
        limit: 0,
        share: config.LIMIT_SHARE,
      } as const;
      return database.db.transaction(tx => startJob(tx, request));
    }
    const session = `${owner} ${kind}`;
    const payload = { command: name };
    const request = {
      kind: 'command',
      owner,
      session,
      payload,
      limit: 0,
      share: config.LIMIT_SHARE,
    } as const;
    const quick = await startJobInSession(database, request, 3_600);
    return quick ?? database.db.transaction(tx => startJob(tx, request));
  };
  const job = await begin();
  if (job.dispatched)
    await queues.add(kind === 'parse' ? 'parse' : 'remote', [toQueueEntry(job)]).catch(() => {});
}

export async function cancel(actor: Actor, around: Surroundings, id: string): Promise<void> {
  const { database } = makeContext(actor, around);
  await database.db.transaction(tx => cancelJob(tx, id, { byUser: true }));
}

export async function removeOld(actor: Actor, around: Surroundings): Promise<void> {
  await removeOldJobs(makeContext(actor, around));
}
