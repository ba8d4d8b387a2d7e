import { setTimeout as delay } from 'node:timers/promises';
import {
  opensCredentials,
  QUEUES_OF,
  type QueueName,
  WORKER_TYPES,
  type WorkerType,
} from '../shared/jobs/catalog.ts';
import { removeSecrets } from '../shared/secrets/redact.ts';
import { exitWith } from '../shared/service/lifecycle.ts';
import { openService } from '../shared/service/open-service.ts';
import { pollBatchHosts } from './batch/poller.ts';
import { createContext } from './create-context.ts';
import { HANDLERS } from './engine/all-handlers.ts';
import { consumeQueues } from './engine/consume-queues.ts';
import { runDispatcher } from './engine/dispatcher.ts';
import { startHeartbeat, withdrawSlots } from './engine/heartbeat.ts';
import { renewLease } from './engine/leases.ts';
import { reportIsolation } from './sandbox/report-isolation.ts';
import { runUpkeep } from './upkeep/run-upkeep.ts';
import { reportFfmpeg } from './video/find-ffmpeg.ts';
import { helpWithVideos } from './video/segments/help-with-videos.ts';
import { sendWebhooks } from './webhooks/send-webhooks.ts';

/** How long pinned jobs may go on after a stop. */
const DRAIN_MS = 28_000;

/** How long the direct connection of a dispatcher that hangs, or whose machine is gone, keeps the lock. */
const LOCK_IDLE_MS = 10_000;

/** Connections of the pool; with the direct one and one of the queue, no more than four. */
const USUAL_CONNECTIONS = 2;

const named = process.argv.slice(2) as WorkerType[];
const types = named.length > 0 ? named : [...WORKER_TYPES];
const unknown = types.find(type => !WORKER_TYPES.includes(type));
if (unknown)
  exitWith(`unknown type of worker: ${unknown}. Name one or more of ${WORKER_TYPES.join(', ')}`);

const service = await openService({
  title:
    types.length === WORKER_TYPES.length ? 'windlass-worker' : `windlass-worker-${types.join('-')}`,
  // Without these keys it would claim and fail jobs that other workers can run.
  requires: types.some(opensCredentials) ? ['SEAL_PRIVATE_KEYS'] : [],
  database: { usual: USUAL_CONNECTIONS, idleSessionMs: LOCK_IDLE_MS },
});
// Child processes inherit the environment; ffmpeg and the decoder of pictures read what hosts send.
removeSecrets(process.env);

const context = createContext(service.context);
const { id, config, log, claims } = context;
const queues = types.flatMap((type): readonly QueueName[] => QUEUES_OF[type]);
const slotsOf = (queue: QueueName) =>
  config[`${queue.toUpperCase() as Uppercase<QueueName>}_SLOTS`];
const slots = Object.fromEntries(queues.map(queue => [queue, slotsOf(queue)]));
const consumption = consumeQueues(context, slots, HANDLERS);
await renewLease(context.database.db, id, []);
const onDraining = (draining: boolean) => consumption.setDraining(draining);
const doesUpkeep = types.includes('upkeep');
const stopHeartbeat = await startHeartbeat(context, { slots, upkeep: doesUpkeep, onDraining });
const upkeep = doesUpkeep ? [runDispatcher(context), runUpkeep(context)] : [];
// These reach the network, and open what is sealed.
const stopHelping = consumption.videoSlots && helpWithVideos(context, consumption.videoSlots);
const remote = types.includes('remote') ? [pollBatchHosts(context), sendWebhooks(context)] : [];
log.info({ types, id }, 'worker is ready');
if (config.SEAL_PRIVATE_KEYS) void context.finishedRuns.sweepUntil(context.stopping);
if (types.includes('video')) void reportFfmpeg(log).catch(() => {});
if (types.some(type => type === 'video' || type === 'parse'))
  void reportIsolation(log).catch(() => {});
service.life.ready();

await service.life.stopped;
log.info({ jobs: claims.size }, 'stopping');
void withdrawSlots(context).catch((error: unknown) =>
  log.warn({ err: error }, 'the slots could not be withdrawn: they count until this worker ends'),
);
await Promise.race([
  Promise.allSettled([consumption.stop(), stopHelping?.(), ...upkeep, ...remote]),
  delay(DRAIN_MS),
]);
claims.stop();
context.sessions.close();
await service.close(stopHeartbeat());
