import { createPostgresBackend, Queue, Worker, withBackend } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { JobRow } from '../database/schema.ts';
import { withDeadline } from '../deadline.ts';
import type { Logger } from '../log.ts';
import { isJobKind, jobDefinition, QUEUES, type QueueName } from './catalog.ts';

/** The queue carries ids only; see entryId. */
export interface QueueEntry {
  id: string;
  epoch: number;
  /** The session whose connection the job uses; another worker may have it open. */
  session?: string | null;
}
export const toQueueEntry = ({
  id,
  epoch,
  kind,
  session,
}: Pick<JobRow, 'id' | 'epoch' | 'kind' | 'session'>): QueueEntry => ({
  id,
  epoch,
  session: isJobKind(kind) && jobDefinition(kind).session === 'uses' ? session : null,
});
const entryId = ({ id, epoch }: QueueEntry) => `${id}-${epoch}`;

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
  readonly #log: Logger;
  readonly #open = new Map<QueueName, Promise<Queue>>();

  constructor(options: { databaseUrl: string; redisUrl: string | undefined; log: Logger }) {
    this.#factory = options.redisUrl ? onRedis(options.redisUrl) : onPostgres(options.databaseUrl);
    this.#log = options.log;
  }

  /** Rejects soon when the queue is away: the dispatcher adds again what could not be added. */
  async add(name: QueueName, entries: QueueEntry[]): Promise<void> {
    const jobs = entries.map(entry => ({
      name: 'job',
      data: entry,
      opts: { ...OPTIONS, jobId: entryId(entry) },
    }));
    const [only] = jobs;
    await withDeadline(DEADLINE, async () => {
      const queue = await this.#queue(name);
      // One at a time is three times as fast as a bulk of one, which makes temporary tables on PostgreSQL.
      if (jobs.length === 1 && only) await queue.add(only.name, only.data, only.opts);
      else await queue.addBulk(jobs);
    });
  }

  /** Which of these entries the queue no longer holds, or holds as ended. */
  async missing(name: QueueName, entries: QueueEntry[]): Promise<QueueEntry[]> {
    const states = await withDeadline(DEADLINE, async () => {
      const queue = await this.#queue(name);
      return Promise.all(entries.map(entry => queue.getJobState(entryId(entry))));
    });
    return entries.filter((_, i) => ['unknown', 'completed', 'failed'].includes(String(states[i])));
  }

  /** The queue itself, for whoever shows it; rejects within 5 s when it is away. */
  open(name: QueueName): Promise<Queue> {
    return withDeadline(DEADLINE, () => this.#queue(name));
  }

  /** Rejects unless the queue's server answers, within 5 s. */
  async check(): Promise<void> {
    await withDeadline(DEADLINE, async () => (await this.#queue(QUEUES[0])).isPaused());
  }

  worker(name: QueueName, concurrency: number, process: Process): Worker {
    return this.#factory.worker(name, concurrency, process);
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()];
    await Promise.allSettled(
      open.map(queue => withDeadline(DEADLINE, async () => (await queue).close())),
    );
    this.#factory.close();
  }

  /** A queue that failed to begin would fail for ever: the next call makes another one. */
  #queue(name: QueueName): Promise<Queue> {
    let opening = this.#open.get(name);
    if (!opening) {
      opening = this.#begin(name);
      this.#open.set(name, opening);
      opening.catch(() => this.#open.delete(name));
    }
    return opening;
  }

  async #begin(name: QueueName): Promise<Queue> {
    const queue = this.#factory.queue(name);
    queue.on('error', error => this.#log.debug({ err: error, queue: name }, 'queue'));
    await queue.waitUntilReady();
    return queue;
  }
}

type Process = (entry: QueueEntry) => Promise<void>;

interface Factory {
  /** Throws when the backend is away. */
  queue(name: QueueName): Queue;
  worker(name: QueueName, concurrency: number, process: Process): Worker;
  close(): void;
}

function onRedis(url: string): Factory {
  const connect = (options: RedisOptions) => {
    const redis = new Redis(url, {
      // Without it a link that went silent was not noticed in 90 s; with it, in 16 s.
      socketTimeout: 20_000,
      connectTimeout: 5_000,
      keepAlive: 5_000,
      retryStrategy: times => Math.min(times * 100, 2_000),
      ...options,
    });
    redis.on('error', () => {});
    return redis;
  };
  const producer = connect({ maxRetriesPerRequest: 1 });
  const connections = [producer];
  return {
    queue: name => {
      if (producer.status !== 'ready') throw new Error('Redis cannot be reached');
      return new Queue(name, { connection: producer, streams: { events: { maxLen: 100 } } });
    },
    worker: (name, concurrency, process) => {
      const connection = connect({ maxRetriesPerRequest: null });
      connections.push(connection);
      return new Worker<QueueEntry>(name, job => process(job.data), {
        ...WORKER_OPTIONS,
        concurrency,
        connection,
      });
    },
    close: () => {
      for (const connection of connections) connection.disconnect();
    },
  };
}

function onPostgres(url: string): Factory {
  const backend = withBackend(createPostgresBackend);
  // In a link that went silent a worker never came back in 80 s; with these, in 3.5 s.
  const connection = (max: number) => ({
    connectionString: url,
    max,
    query_timeout: 10_000,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    application_name: `${process.title}-queue`,
    // What a crash of the database takes from the queue is sent again: its commits need not wait for the disk.
    options: '-c synchronous_commit=off',
  });
  return {
    queue: name => new backend.Queue(name, { connection: connection(2) }) as unknown as Queue,
    worker: (name, concurrency, process) => {
      const options = { ...WORKER_OPTIONS, concurrency, connection: connection(3) };
      return new backend.Worker<QueueEntry>(
        name,
        job => process(job.data),
        options,
      ) as unknown as Worker;
    },
    close: () => {},
  };
}

const DEADLINE = { ms: 5_000, what: 'the queue' };
