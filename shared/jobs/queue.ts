import { createPostgresBackend, Queue, Worker, withBackend } from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from '../log.ts';
import { QUEUES, type QueueName } from './catalog.ts';

/** The queue carries ids only; see entryId. */
export interface Entry {
  id: string;
  epoch: number;
}
export const entryId = ({ id, epoch }: Entry) => `${id}-${epoch}`;

/** An entry nobody took for so long is of no use: the dispatcher will have made a newer one. */
const OPTIONS = { removeOnComplete: true, removeOnFail: true, attempts: 1 };
/** A worker that died is noticed after 10 s; what it held is handed on, and refused by the row while its lease lasts. */
const WORKER_OPTIONS = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  maxStalledCount: 1_000,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
};

/** BullMQ on Redis or on PostgreSQL: one interface, chosen by REDIS_URL. A hint that makes a worker look, never the truth. */
export class JobQueues {
  readonly #factory: Factory;
  readonly #queues: Map<QueueName, Queue>;

  constructor(connections: { databaseUrl: string; redisUrl: string | undefined; log: Logger }) {
    this.#factory = connections.redisUrl
      ? onRedis(connections.redisUrl)
      : onPostgres(connections.databaseUrl);
    this.#queues = new Map(QUEUES.map(name => [name, this.#factory.queue(name)]));
    for (const queue of this.#queues.values()) {
      queue.on('error', error => connections.log.debug({ err: error, queue: queue.name }, 'queue'));
    }
  }

  queue(name: QueueName): Queue {
    const queue = this.#queues.get(name);
    if (!queue) throw new Error(`no queue ${name}`);
    return queue;
  }

  async add(name: QueueName, entries: Entry[], signal?: AbortSignal): Promise<void> {
    const queue = this.queue(name);
    const toAdd = entries.map(entry => ({
      name: 'job',
      data: entry,
      opts: { ...OPTIONS, jobId: entryId(entry) },
    }));
    const [only] = toAdd;
    const added: Promise<unknown> =
      toAdd.length === 1 && only
        ? queue.add(only.name, only.data, only.opts)
        : queue.addBulk(toAdd);
    await withDeadline(added, 5_000, signal);
  }

  /** Which of these entries the queue no longer holds, or holds as ended. */
  async missing(name: QueueName, entries: Entry[]): Promise<Entry[]> {
    const queue = this.queue(name);
    const states = await withDeadline(
      Promise.all(entries.map(entry => queue.getJobState(entryId(entry)))),
      5_000,
    );
    return entries.filter((_, i) => ['unknown', 'completed', 'failed'].includes(String(states[i])));
  }

  worker(name: QueueName, concurrency: number, process: (entry: Entry) => Promise<void>): Worker {
    return this.#factory.worker(name, concurrency, process);
  }

  async close(): Promise<void> {
    await Promise.allSettled(
      [...this.#queues.values()].map(queue => withDeadline(queue.close(), 2_000)),
    );
    await this.#factory.close();
  }
}

interface Factory {
  queue(name: QueueName): Queue;
  worker(name: QueueName, concurrency: number, process: (entry: Entry) => Promise<void>): Worker;
  close(): Promise<void>;
}

function onRedis(url: string): Factory {
  // Without socketTimeout a link that went silent was not noticed in 90 s; with it, in 16 s.
  const shared = {
    socketTimeout: 20_000,
    connectTimeout: 5_000,
    keepAlive: 5_000,
    retryStrategy: (times: number) => Math.min(times * 100, 2_000),
  };
  // A request that finds Redis away must not wait for it: the dispatcher adds the entry later.
  const producer = new Redis(url, {
    ...shared,
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
  });
  producer.on('error', () => {});
  const consumers: Redis[] = [];
  return {
    queue: name =>
      new Queue(name, {
        connection: producer,
        skipWaitingForReady: true,
        streams: { events: { maxLen: 100 } },
      }),
    worker: (name, concurrency, process) => {
      const consumer = new Redis(url, { ...shared, maxRetriesPerRequest: null });
      consumer.on('error', () => {});
      consumers.push(consumer);
      return new Worker<Entry>(name, job => process(job.data), {
        ...WORKER_OPTIONS,
        concurrency,
        connection: consumer,
      });
    },
    close: async () => {
      for (const connection of [producer, ...consumers]) connection.disconnect();
    },
  };
}

function onPostgres(url: string): Factory {
  const { Queue: PgQueue, Worker: PgWorker } = withBackend(createPostgresBackend);
  // In a link that went silent a worker never came back in 80 s; with these, in 3.5 s.
  const connection = (max: number) => ({
    connectionString: url,
    max,
    query_timeout: 10_000,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    application_name: `${process.title}-queue`,
  });
  return {
    queue: name => new PgQueue(name, { connection: connection(2) }) as unknown as Queue,
    worker: (name, concurrency, process) =>
      new PgWorker<Entry>(name, job => process(job.data), {
        ...WORKER_OPTIONS,
        concurrency,
        connection: connection(3),
      }) as unknown as Worker,
    close: async () => {},
  };
}

async function withDeadline<T>(promise: Promise<T>, ms: number, signal?: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the queue did not answer within ${ms} ms`)), ms);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
