import { setTimeout as delay } from 'node:timers/promises';
import { openDatabase } from '../shared/database/connect.ts';
import { Notifications } from '../shared/database/notifications.ts';
import { waitForSchema } from '../shared/database/wait-for-schema.ts';
import { waitForStore } from '../shared/installation/wait-for-store.ts';
import {
  opensCredentials,
  QUEUES_OF,
  type QueueName,
  WORKER_TYPES,
  type WorkerType,
} from '../shared/jobs/catalog.ts';
import { JobQueues } from '../shared/jobs/queue.ts';
import { newWorkerId } from '../shared/jobs/worker-id.ts';
import {
  beginProcess,
  exitOnBadSettings,
  exitOnUncaughtError,
  exitWith,
} from '../shared/process/lifecycle.ts';
import { createLog } from '../shared/process/log.ts';
import { receiveSecrets } from '../shared/secrets/handed-secrets.ts';
import { listSecrets, removeSecrets } from '../shared/secrets/redact.ts';
import { readConfig, renewKeys } from '../shared/settings/config.ts';
import { FreeSpace } from '../shared/storage/free-space.ts';
import { openObjectStore } from '../shared/storage/open.ts';
import { pollBatchHosts } from './batch/poller.ts';
import type { WorkerContext } from './context.ts';
import { consumeQueues } from './engine/consume-queues.ts';
import { runDispatcher } from './engine/dispatcher.ts';
import { startHeartbeat, withdrawSlots } from './engine/heartbeat.ts';
import { JobGroups } from './engine/job-groups.ts';
import { LeaseRenewer } from './engine/lease-renewer.ts';
import { renewLease } from './engine/leases.ts';
import { loadHandlers } from './engine/load-handlers.ts';
import { WorkerMetrics } from './engine/worker-metrics.ts';
import { FinishedRunRemover } from './runs/finished-run-remover.ts';
import { reportIsolation } from './sandbox/report-isolation.ts';
import { SessionPool } from './ssh/session-pool.ts';
import { runUpkeep } from './upkeep/run-upkeep.ts';
import { reportFfmpeg } from './video/find-ffmpeg.ts';
import { helpWithVideos } from './video/segments/help-with-videos.ts';
import { sendWebhooks } from './webhooks/send-webhooks.ts';

/** How long pinned jobs may go on after a stop. */
const DRAIN_MS = 28_000;

/** After so long a dispatcher that hangs, or whose machine is gone, loses its direct connection and the lock. */
const LOCK_IDLE_MS = 10_000;

/** With the direct one and one of the queue, no more than four. */
const USUAL_CONNECTIONS = 2;

const named = process.argv.slice(2) as WorkerType[];
const work = named.length > 0 ? named : [...WORKER_TYPES];
const unknown = work.find(kind => !WORKER_TYPES.includes(kind));
if (unknown)
  exitWith(`windlass: there is no work named ${unknown}; there is ${WORKER_TYPES.join(', ')}`);

const title =
  work.length === WORKER_TYPES.length ? 'windlass-worker' : `windlass-worker-${work.join('-')}`;
const life = beginProcess(title);

try {
  await main();
} catch (error) {
  exitOnBadSettings(error);
  throw error;
}

async function main(): Promise<void> {
  const handed = await receiveSecrets(process.env);
  const config = readConfig(handed.environment);
  // Child processes inherit the environment; ffmpeg and the decoder of pictures read what hosts send.
  removeSecrets(process.env);
  const log = createLog({ level: config.LOG_LEVEL, name: title, secrets: listSecrets(config) });
  exitOnUncaughtError(log);
  if (!config.DATABASE_URL)
    exitWith('windlass: DATABASE_URL is not set; `npm start` brings a database of its own');
  // Without these keys it would claim and fail jobs that other workers can run.
  if (!config.SEAL_PRIVATE_KEYS && work.some(opensCredentials))
    exitWith(
      `windlass: SEAL_PRIVATE_KEYS is not set; ${WORKER_TYPES.filter(opensCredentials).join(' and ')} workers open credentials`,
    );
  const database = openDatabase(config.DATABASE_URL, {
    directUrl: config.DATABASE_DIRECT_URL,
    usual: USUAL_CONNECTIONS,
    idleSessionMs: LOCK_IDLE_MS,
  });
  const notifications = new Notifications(database, log);
  await waitForSchema(database, {
    signal: life.stopping,
    onWait: reason => log.info(reason),
    onNewer: what => log.warn(what),
  });
  await notifications.listen();
  const metrics = new WorkerMetrics();
  const id = newWorkerId();
  const leases = new LeaseRenewer({ id, database, notifications, log, metrics });
  const sessions = new SessionPool({
    ...{ id, config, database, notifications, log },
    onAgentConnection: session => finishedRuns.removeOnConnection(session),
    isNeeded: sid => finishedRuns.hasGathered(sid),
  });
  const finishedRuns = new FinishedRunRemover({
    ...{ database, log },
    limitSeconds: config.LIMIT_COMMAND_SECONDS,
    use: (...given) => sessions.use(...given),
    mayUse: sid => sessions.mayUse(sid),
  });
  const objects = await openObjectStore(config);
  await waitForStore(database, objects, { log, signal: life.stopping });
  const context: WorkerContext = {
    id,
    config,
    log,
    database,
    notifications,
    leases,
    groups: new JobGroups({ id, database, notifications }),
    metrics,
    sessions,
    finishedRuns,
    objects,
    freeSpace: new FreeSpace(objects, config.LIMIT_FREE_BYTES),
    queues: new JobQueues({
      databaseUrl: config.DATABASE_DIRECT_URL ?? config.DATABASE_URL,
      redisUrl: config.REDIS_URL,
      log,
      direct: database.direct,
    }),
    stopping: life.stopping,
  };

  handed.onChange(secrets => renewKeys(config, { ...handed.environment, ...secrets }));

  const queues = work.flatMap((each): readonly QueueName[] => QUEUES_OF[each]);
  const slotsOf = (queue: QueueName) =>
    config[`${queue.toUpperCase() as Uppercase<QueueName>}_SLOTS`];
  const slots = Object.fromEntries(queues.map(queue => [queue, slotsOf(queue)]));
  const consumption = consumeQueues(context, slots, await loadHandlers());
  await renewLease(database.db, id, []);
  const onDraining = (draining: boolean) => consumption.setDraining(draining);
  const stopHeartbeat = await startHeartbeat(context, { slots, onDraining });
  const upkeep = work.includes('upkeep') ? [runDispatcher(context), runUpkeep(context)] : [];
  // These reach the network, and open what is sealed.
  const stopHelping = consumption.videoSlots && helpWithVideos(context, consumption.videoSlots);
  const remote = work.includes('remote') ? [pollBatchHosts(context), sendWebhooks(context)] : [];
  log.info({ work, id: context.id }, 'worker is ready');
  if (config.SEAL_PRIVATE_KEYS) void finishedRuns.sweepUntil(life.stopping);
  if (work.includes('video')) void reportFfmpeg(log).catch(() => {});
  if (work.some(each => each === 'video' || each === 'parse'))
    void reportIsolation(log).catch(() => {});
  life.ready();

  await life.stopped;
  log.info({ jobs: leases.size }, 'stopping');
  void withdrawSlots(context).catch((error: unknown) =>
    log.warn({ err: error }, 'the slots could not be withdrawn: they count until this worker ends'),
  );
  await Promise.race([
    Promise.allSettled([consumption.stop(), stopHelping?.(), ...upkeep, ...remote]),
    delay(DRAIN_MS),
  ]);
  leases.stop();
  sessions.close();
  const ended = Promise.allSettled([
    stopHeartbeat(),
    notifications.close(),
    context.queues.close(),
  ]);
  await Promise.race([ended.then(() => database.close()), delay(3_000)]);
  process.exit(0);
}
