import { sql } from 'drizzle-orm';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import { z } from 'zod';
import { workers } from '../../shared/database/schema.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';
import { readUnsupported } from '../../shared/jobs/payload-versions.ts';
import { withDeadline } from '../../shared/process/deadline.ts';
import type { ApiContext } from '../context.ts';
import { countWorkers } from './count-workers.ts';
import { readQueueStates } from './queue-state.ts';
import { findStuck } from './stuck-queues.ts';

/** The metrics in a worker's heartbeat, from prom-client of this or another version. */
const reported = z.array(
  z.object({
    name: z.string(),
    help: z.string(),
    type: z.string(),
    aggregator: z.literal('sum').catch('sum'),
    values: z.array(
      z.object({
        metricName: z.string().optional(),
        labels: z.record(z.string(), z.union([z.string(), z.number()])),
        value: z.number(),
      }),
    ),
  }),
);

/** Well below the time-out of a scrape. */
const QUEUE_DEADLINE = { ms: 2_000, what: 'the queue' };

type Report = MetricObjectWithValues<MetricValue<string>>;

/** All metrics for Prometheus: of the queues, of the workers alive, and of this process. */
export async function collectMetrics({
  database: { db },
  metrics,
  freeSpace,
  queues: server,
}: Pick<ApiContext, 'database' | 'metrics' | 'freeSpace' | 'queues'>): Promise<string> {
  const [queues, newer, counts, alive, free, isQueueUp] = await Promise.all([
    readQueueStates(db),
    readUnsupported(db),
    countWorkers(db),
    db.select({ id: workers.id, metrics: workers.metrics }).from(workers).where(sql.raw(IS_ALIVE)),
    freeSpace.read().catch(() => undefined),
    withDeadline(QUEUE_DEADLINE, () => server.check()).then(
      () => true,
      () => false,
    ),
  ]);
  const stuck = await findStuck(db, queues);
  const { gauges } = metrics;
  gauges.windlass_queue_up.set(isQueueUp ? 1 : 0);
  gauges.windlass_workers_alive.set(counts.alive);
  gauges.windlass_upkeep_workers_alive.set(counts.upkeep);
  if (free === undefined) gauges.windlass_storage_free_bytes.remove();
  else gauges.windlass_storage_free_bytes.set(free);
  // Without a reset a kind that no longer runs, or waits, would keep its last value.
  gauges.windlass_jobs_running.reset();
  gauges.windlass_jobs_unsupported.reset();
  for (const { kind, jobs } of newer) gauges.windlass_jobs_unsupported.inc({ kind }, jobs);
  for (const state of queues) {
    const { queue, depth, oldestSeconds, running, slots } = state;
    gauges.windlass_queue_stuck.set({ queue }, stuck.includes(state) ? 1 : 0);
    gauges.windlass_queue_depth.set({ queue }, depth);
    gauges.windlass_queue_oldest_waiting_seconds.set({ queue }, oldestSeconds);
    gauges.windlass_worker_slots.set({ queue }, slots);
    for (const [kind, count] of Object.entries(running))
      gauges.windlass_jobs_running.set({ kind }, count);
  }
  const ofWorkers = AggregatorRegistry.aggregate(alive.map(readReport));
  return `${await metrics.registry.metrics()}${await ofWorkers.metrics()}`;
}

/** The worker's metrics with its id as a label; none when they do not parse. */
function readReport({ id, metrics }: { id: string; metrics: unknown }): Report[] {
  const { data } = reported.safeParse(metrics);
  return (data ?? []).map(metric => ({
    ...metric,
    values: metric.values.map(({ labels, ...value }) => ({
      ...value,
      labels: { worker: id, ...labels },
    })),
  })) as unknown as Report[];
}
