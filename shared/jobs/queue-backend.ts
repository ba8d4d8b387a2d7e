import type { Queue, Worker, WorkerOptions } from 'bullmq';
import type { QueueName } from './catalog.ts';

/** What BullMQ keeps entries in. */
export interface QueueBackend {
  /** Undefined unless the server refuses the login, or TLS with it fails. */
  refusal?(): Error | undefined;
  /** Fails where an entry would; where there is none, a read does. */
  write?(): Promise<unknown>;
  /** How the server chooses the entries that it may drop; undefined where it drops none, or does not tell. */
  evictionPolicy?(): Promise<string | undefined>;
  /** Throws when the backend is unavailable. */
  queue(name: QueueName): Queue;
  worker<E>(
    name: QueueName,
    process: (job: { data: E }) => Promise<unknown>,
    options: Omit<WorkerOptions, 'connection'>,
  ): Worker;
  close(): void;
}
