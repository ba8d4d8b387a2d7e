import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createMetrics, WORKER_METRICS } from '../../shared/process/metrics.ts';
import type { ClaimedRow } from './claim-jobs.ts';

/** Coarse enough to cost nothing while idle. */
const LAG_RESOLUTION_MS = 100;

/** The metrics of a worker. It has no port, so its heartbeat writes them and the API serves them. */
export class WorkerMetrics {
  readonly #counted = createMetrics(WORKER_METRICS);
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });

  constructor() {
    this.#lag.enable();
  }

  /** A job was claimed: for the first time, which ends its wait, or for another attempt. */
  claimed({ kind, queue, created, started, ranSeconds }: ClaimedRow): void {
    const { metrics } = this.#counted;
    const began = (started ?? created).getTime() / 1_000;
    metrics.windlass_worker_last_taken_timestamp_seconds.set({ queue }, began + ranSeconds);
    if (ranSeconds > 0) metrics.windlass_job_retakes_total.inc({ kind });
    else metrics.windlass_job_wait_seconds.observe({ kind }, began - created.getTime() / 1_000);
  }

  /** A job ended so many seconds after its first claim. */
  ended(kind: string, outcome: 'succeeded' | 'failed' | 'cancelled', seconds: number): void {
    this.#counted.metrics.windlass_job_duration_seconds.observe({ kind, outcome }, seconds);
  }

  /** Jobs that ended long ago were removed. */
  jobsRemoved(count: number): void {
    this.#counted.metrics.windlass_jobs_removed_total.inc(count);
  }

  leaseRevoked(): void {
    this.#counted.metrics.windlass_leases_lost_total.inc();
  }

  leasesExpired(count: number): void {
    this.#counted.metrics.windlass_leases_expired_total.inc(count);
  }

  /** `host` is an administrator's entry: what clients write makes no series. */
  hostConnectionFailed(host: string): void {
    this.#counted.metrics.windlass_host_connection_failures_total.inc({ host });
  }

  /** All metrics, as the heartbeat writes them. */
  async report(): Promise<unknown> {
    const { registry, metrics } = this.#counted;
    const lag = Math.max(0, this.#lag.max / 1e6 - LAG_RESOLUTION_MS);
    this.#lag.reset();
    // To 10 ms and 4 MiB, so that an idle worker's report does not change with every beat.
    metrics.windlass_worker_eventloop_lag_seconds.set(Math.round(lag / 10) / 100);
    metrics.windlass_worker_memory_bytes.set(
      Math.round(process.memoryUsage.rss() / 2 ** 22) * 2 ** 22,
    );
    return registry.getMetricsAsJSON();
  }

  close(): void {
    this.#lag.disable();
  }
}
