import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { QUEUES, type QueueName } from '../../shared/jobs/catalog.ts';
import { hasSlot, isParked } from '../../shared/jobs/job-conditions.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';
import { isSupportedInQueue, readSupportedByQueue } from '../../shared/jobs/payload-versions.ts';

/** Limit on the count of waiting jobs, so that a long queue does not slow the query down. */
const MAX_COUNTED = 50_000;

export interface QueueState {
  queue: QueueName;
  /** Jobs without a lease. */
  depth: number;
  /** Those of them that a worker could claim now. */
  due: number;
  /** For how many seconds the oldest of the due jobs has been due; 0: there is none. */
  oldestSeconds: number;
  /** Leased jobs, by kind. */
  running: Record<string, number>;
  /** Some of them are of a worker that has renewed its lease in time. */
  isWorking: boolean;
  /** Slots of the workers that are alive and take jobs. */
  slots: number;
}

/**
 * Waiting and running jobs of each queue. Scans indexes of open jobs only, however many have ended. A job waits since it
 * was created, or since its `not_before`, which a revoked lease and a yielded slot set.
 */
export async function readQueueStates(db: Db): Promise<QueueState[]> {
  const supported = await readSupportedByQueue(db);
  // Without a worker everything waits for one.
  const isForWorkers = supported ? isSupportedInQueue(supported) : sql`true`;
  const ofQueue = sql`from jobs where jobs.queue = q.queue and finished is null and lease_token is null`;
  const most = sql.raw(String(MAX_COUNTED));
  return db.execute<QueueState & Record<string, unknown>>(sql`
    select q.queue,
      w.depth, w.due, w.oldest as "oldestSeconds",
      coalesce(r.running, '{}') as running, coalesce(r.working, false) as "isWorking",
      (select coalesce(sum((slots->>q.queue)::int), 0)::int from workers where not draining and ${sql.raw(IS_ALIVE)}) as slots
    from unnest(string_to_array(${QUEUES.join(',')}, ',')) as q(queue)
    cross join lateral (
      select (select count(*)::int from (select ${ofQueue} limit ${most}) counted) as depth,
        count(*) filter (where since <= now())::int as due,
        coalesce(extract(epoch from now() - min(since) filter (where since <= now())), 0)::float8 as oldest
      from (
        select case when ${isForWorkers} then greatest(created, not_before) end as since ${ofQueue} and (${isParked}) is not true
        order by id limit ${most}
      ) waiting
    ) w
    left join (
      select queue, jsonb_object_agg(kind, n) as running, bool_or(working) as working from (
        select queue, kind, count(*) as n, bool_or(leases.expires > clock()) as working
        from jobs left join leases on leases.worker = jobs.worker
        where ${hasSlot} and num_nonnulls(lease_token) = 1
        group by queue, kind
      ) held group by queue
    ) r on r.queue = q.queue`);
}

/** How many seconds ago a worker that is alive last claimed a job of each queue. */
export async function readLastClaims(db: Db): Promise<Map<string, number>> {
  const rows = await db.execute<{ queue: string; ago: number }>(sql`
    select v->'labels'->>'queue' as queue,
      min(extract(epoch from now()) - (v->>'value')::float8)::float8 as ago
    from workers,
      jsonb_path_query(metrics, '$[*] ? (@.name == "windlass_worker_last_taken_timestamp_seconds").values[*]') v
    where ${sql.raw(IS_ALIVE)}
    group by 1`);
  return new Map(rows.map(({ queue, ago }) => [queue, ago]));
}
