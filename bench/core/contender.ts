/** So many jobs are accepted at once, with one call each: a service answers each of its requests. */
export const IN_FLIGHT = 64;

/** One side of a comparison of job queues: Windlass, or a peer. */
export interface Contender {
  /** Accepts one job: resolves when the queue promises that it will be done. */
  accept(): Promise<unknown>;
  /** Whether all accepted jobs have ended. */
  isDrained(): Promise<boolean>;
  close(): Promise<unknown>;
}

/** Where the queues are. */
export interface Servers {
  databaseUrl: string;
  redisUrl: string;
}

export const PAYLOAD = { command: 'true' };
