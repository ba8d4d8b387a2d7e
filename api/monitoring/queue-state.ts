import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { QUEUES, type QueueName } from '../../shared/jobs/catalog.ts';
import { ALIVE_SECONDS } from '../../shared/jobs/lease.ts';

/** Waiting jobs are counted up to here, so that a long queue does not make looking at it slow. */
const COUNTED = 50_000;

export interface QueueState {
  queue: QueueName;
  /** Jobs that no worker has. */
  depth: number;
  /** Of these, those that a worker could take now. */
  due: number;
  /** Since when the one of them that has waited the longest could be taken; 0: there is none. */
  oldestSeconds: number;
  /** Jobs in the hands of workers, by kind. */
  running: Record<string, number>;
  /** Of the workers alive. */
  slots: number;
}

/**
 * What waits and what runs, by queue: index scans over open jobs alone, however many have ended. A job waits from its
 * making, or from the time before which it must not be taken: a lost worker's job, and one given back, have that set.
 */
export async function readQueueStates(db: Db): Promise<QueueState[]> {
  const rows = await db.execute<Record<keyof QueueState, unknown>>(sql`
    select q.queue,
      w.depth, w.due, w.oldest as "oldestSeconds",
      coalesce(r.running, '{}') as running,
      (select coalesce(sum((slots->>q.queue)::int), 0)::int from workers where ${workerIsAlive}) as slots
    from unnest(string_to_array(${QUEUES.join(',')}, ',')) as q(queue)
    cross join lateral (
      select count(*)::int as depth, count(*) filter (where since <= now())::int as due,
        coalesce(extract(epoch from now() - min(since) filter (where since <= now())), 0)::float8 as oldest
      from (
        select greatest(created, not_before) as since from jobs
        where jobs.queue = q.queue and finished is null and lease_token is null
        order by id limit ${COUNTED}
      ) waiting
    ) w
    left join (
      select queue, jsonb_object_agg(kind, n) as running from (
        select queue, kind, count(*) as n from jobs
        where finished is null and lease_token is not null and lease_expires > now()
        group by queue, kind
      ) held group by queue
    ) r on r.queue = q.queue`);
  return rows as unknown as QueueState[];
}

/** When a worker that is alive last took a job of each queue, in seconds before now. */
export async function readLastClaims(db: Db): Promise<Map<string, number>> {
  const rows = await db.execute<{ queue: string; ago: number }>(sql`
    select v->'labels'->>'queue' as queue,
      min(extract(epoch from now()) - (v->>'value')::float8)::float8 as ago
    from workers,
      jsonb_path_query(metrics, '$[*] ? (@.name == "windlass_worker_last_taken_timestamp_seconds").values[*]') v
    where ${workerIsAlive}
    group by 1`);
  return new Map(rows.map(({ queue, ago }) => [queue, ago]));
}

/** For a query of the workers' table. */
export const workerIsAlive = sql`seen > now() - ${`${ALIVE_SECONDS} seconds`}::interval`;
