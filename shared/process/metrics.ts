import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Upper bounds of histogram buckets, in seconds. */
const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
const WAIT_BUCKETS = [0.01, 0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
const WORK_BUCKETS = [0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400];

interface Metric {
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
  help: string;
  buckets?: number[];
}

/** Metrics of the API; gauges are read from the database at each scrape. No label's values depend on clients. */
export const API_METRICS = {
  windlass_http_requests_total: {
    type: 'counter',
    labels: ['method', 'route', 'status', 'code'],
    help: 'Requests answered, by method, route pattern (none: no route), class of status (2xx) and, of 5xx, code of the problem.',
  },
  windlass_http_request_duration_seconds: {
    type: 'histogram',
    labels: ['method', 'route', 'status'],
    help: 'Time until a request was answered; waiting launches and event streams take long.',
    buckets: REQUEST_BUCKETS,
  },
  windlass_queue_depth: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Jobs without a lease, including those that wait for a set time; counted up to 50,000.',
  },
  windlass_queue_oldest_waiting_seconds: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Age of the oldest job that could be claimed now; 0 when none waits.',
  },
  windlass_queue_stuck: {
    type: 'gauge',
    labels: ['queue'],
    help: '1 when work has waited for 30 s and no worker takes jobs of the queue, as `work` of /readyz tells; else 0.',
  },
  windlass_queue_up: {
    type: 'gauge',
    labels: [],
    help: '0 while the server of the queues does not answer this API or takes no entries, so that new work waits; else 1.',
  },
  windlass_jobs_unsupported: {
    type: 'gauge',
    labels: ['kind'],
    help: 'Jobs that wait for a worker of a newer release; absent when none does.',
  },
  windlass_jobs_running: {
    type: 'gauge',
    labels: ['kind'],
    help: 'Jobs with a lease.',
  },
  windlass_workers_alive: {
    type: 'gauge',
    labels: [],
    help: 'Workers seen in the last 10 s.',
  },
  windlass_upkeep_workers_alive: {
    type: 'gauge',
    labels: [],
    help: 'Of these, those that may be the dispatcher: without one, lost jobs hang.',
  },
  windlass_worker_slots: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Jobs that the live workers can run at once, without those that are draining.',
  },
  windlass_storage_free_bytes: {
    type: 'gauge',
    labels: [],
    help: "Free bytes on the disk of the object store, without what is root's; absent for S3.",
  },
} as const satisfies Record<string, Metric>;

/** Metrics of each worker; the API serves them with the label `worker`, its id, while the worker is alive. */
export const WORKER_METRICS = {
  windlass_job_wait_seconds: {
    type: 'histogram',
    labels: ['kind'],
    help: 'Time from the request for a job until its first claim.',
    buckets: WAIT_BUCKETS,
  },
  windlass_job_duration_seconds: {
    type: 'histogram',
    labels: ['kind', 'outcome'],
    help: 'Time from the first claim of a job until its end: succeeded, failed, cancelled.',
    buckets: WORK_BUCKETS,
  },
  windlass_job_retakes_total: {
    type: 'counter',
    labels: ['kind'],
    help: 'Claims of jobs that an earlier attempt had started.',
  },
  windlass_jobs_removed_total: {
    type: 'counter',
    labels: [],
    help: 'Ended jobs that this worker removed after JOB_RETENTION_DAYS.',
  },
  windlass_leases_lost_total: {
    type: 'counter',
    labels: [],
    help: 'Jobs that this worker lost because it did not renew its lease in time.',
  },
  windlass_leases_expired_total: {
    type: 'counter',
    labels: [],
    help: 'Jobs of workers with expired leases that this one reclaimed as the dispatcher.',
  },
  windlass_host_connection_failures_total: {
    type: 'counter',
    labels: ['host'],
    help: 'Failed tries of this worker to connect to a host; refused logins do not count.',
  },
  windlass_worker_last_taken_timestamp_seconds: {
    type: 'gauge',
    labels: ['queue'],
    help: "When this worker last claimed a job of the queue, by the database's clock.",
  },
  windlass_worker_eventloop_lag_seconds: {
    type: 'gauge',
    labels: [],
    help: 'The longest event-loop stall of this worker since its last report (3 s).',
  },
  windlass_worker_memory_bytes: {
    type: 'gauge',
    labels: [],
    help: 'Resident memory of this worker, without its child processes.',
  },
} as const satisfies Record<string, Metric>;

type Made<M extends Metric> = M['type'] extends 'counter'
  ? Counter
  : M['type'] extends 'gauge'
    ? Gauge
    : Histogram;

/** Creates the metrics of a table in a registry of their own. */
export function createMetrics<T extends Record<string, Metric>>(
  table: T,
): { registry: Registry; metrics: { [K in keyof T]: Made<T[K]> } } {
  const registry = new Registry();
  const entries = Object.entries(table).map(([name, { type, labels, help, buckets }]) => {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (type === 'counter') return [name, new Counter(options)];
    if (type === 'gauge') return [name, new Gauge(options)];
    return [name, new Histogram({ ...options, buckets })];
  });
  return { registry, metrics: Object.fromEntries(entries) };
}
