/** A lease expires so long after its last renewal. */
export const LEASE_SECONDS = 10;
/** How often a worker renews its leases. */
export const RENEW_MS = 3_000;
/** SQL: a row of `workers` is of one that is alive: its last heartbeat is no older, by the database's clock. */
export const IS_ALIVE = `workers.seen > now() - interval '10 seconds'`;
/** Backoff after a lost worker, by how many were lost in a row without progress: 0, 1, 2, 4, then 8 s. */
export const LOSS_BACKOFF_SECONDS = [0, 1, 2, 4, 8] as const;
export const backoffAfter = (losses: number): number =>
  LOSS_BACKOFF_SECONDS[Math.min(losses, LOSS_BACKOFF_SECONDS.length) - 1] ?? 0;
export const MAX_CONSECUTIVE_LOSSES = 20;
/** An entry that was not claimed for so long after its dispatch is looked up in the queue. */
export const UNCLAIMED_SECONDS = 15;
