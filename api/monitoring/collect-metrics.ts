import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import { z } from 'zod';
import type { Db } from '../../shared/database/connect.ts';
import { workers } from '../../shared/database/schema.ts';
import type { ApiMetrics } from './api-metrics.ts';
import { readQueueStates, workerIsAlive } from './queue-state.ts';

/** What a worker's heartbeat holds, from prom-client of this version or another. */
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

/** Everything that Prometheus is told: two queries, and this process's own counts. */
export async function collectMetrics(db: Db, metrics: ApiMetrics): Promise<string> {
  const [queues, alive] = await Promise.all([
    readQueueStates(db),
    db.select({ id: workers.id, metrics: workers.metrics }).from(workers).where(workerIsAlive),
  ]);
  const { gauges } = metrics;
  gauges.windlass_workers_alive.set(alive.length);
  // A kind of which none runs any more has no line, rather than its last one.
  gauges.windlass_jobs_running.reset();
  for (const { queue, depth, oldestSeconds, running, slots } of queues) {
    gauges.windlass_queue_depth.set({ queue }, depth);
    gauges.windlass_queue_oldest_waiting_seconds.set({ queue }, oldestSeconds);
    gauges.windlass_worker_slots.set({ queue }, slots);
    for (const [kind, count] of Object.entries(running))
      gauges.windlass_jobs_running.set({ kind }, count);
  }
  const ofWorkers = AggregatorRegistry.aggregate(alive.map(readReport));
  return `${await metrics.registry.metrics()}${await ofWorkers.metrics()}`;
}

/** The worker's counts, each with its id; none where they cannot be read. */
function readReport(row: {
  id: string;
  metrics: unknown;
}): MetricObjectWithValues<MetricValue<string>>[] {
  const { data } = reported.safeParse(row.metrics);
  return (data ?? []).map(metric => ({
    ...metric,
    values: metric.values.map(({ labels, ...value }) => ({
      ...value,
      labels: { worker: row.id, ...labels },
    })),
  })) as unknown as MetricObjectWithValues<MetricValue<string>>[];
}
