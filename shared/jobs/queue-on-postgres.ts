import { createPostgresBackend, type Queue, type Worker, withBackend } from 'bullmq';
import type { DirectConnection } from '../database/direct-connection.ts';
import { BullmqPgPool } from './bullmq-pg-pool.ts';
import type { QueueBackend } from './queue-backend.ts';

/** BullMQ on PostgreSQL. */
export function onPostgres(url: string, direct: DirectConnection | undefined): QueueBackend {
  const backend = withBackend(createPostgresBackend);
  const pool = new BullmqPgPool(url, direct);
  return {
    queue: name => new backend.Queue(name, { connection: pool.connection() }) as unknown as Queue,
    worker: (name, process, options) => {
      const connection = pool.connection();
      return new backend.Worker(name, process, {
        ...options,
        connection,
      }) as unknown as Worker;
    },
    close: () => void pool.close().catch(() => {}),
  };
}
