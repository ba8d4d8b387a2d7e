/** A lease lasts so long from its renewal, on the database's clock, as all seconds here. */
export const LEASE_SECONDS = 10;
/** How often a worker renews its leases, by a timer of its own. */
export const RENEW_MS = 3_000;
/** A worker seen longer ago is not alive. */
export const ALIVE_SECONDS = 10;
/** Waits after a worker was lost, by how many were lost in a row without progress: 0, 1, 2, 4, then 8 s. */
export const LOSS_BACKOFF_SECONDS = [0, 1, 2, 4, 8] as const;
export const MAX_CONSECUTIVE_LOSSES = 20;
/** What was dispatched and not claimed for so long is looked up in the queue. */
export const UNCLAIMED_SECONDS = 15;
/** Entries that a queue holds at most, for each slot of the workers seen alive. */
export const ENTRIES_PER_SLOT = 4;
