import { createPostgresBackend, Queue, Worker, withBackend } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { DirectConnection } from '../database/direct-connection.ts';
import type { JobRow } from '../database/schema.ts';
import { withDeadline } from '../process/deadline.ts';
import type { Logger } from '../process/log.ts';
import { isJobKind, jobDefinition, QUEUES, type QueueName } from './catalog.ts';
import { QueuePool } from './queue-pool.ts';

/** The queue holds ids only, no payloads. */
export interface QueueEntry {
  id: string;
  epoch: number;
  /** The session whose connection the job uses; another worker may have it open. */
  session?: string | null;
}
export function toQueueEntry(job: Pick<JobRow, 'id' | 'epoch' | 'kind' | 'session'>): QueueEntry {
  const { id, epoch, kind, session } = job;
  const usesSession = isJobKind(kind) && jobDefinition(kind).session === 'uses';
  return { id, epoch, session: usesSession ? session : null };
}
const entryId = ({ id, epoch }: QueueEntry) => `${id}-${epoch}`;

/** Ended and failed entries are removed: the dispatcher adds new ones, under a higher epoch. */
const OPTIONS = { removeOnComplete: true, removeOnFail: true, attempts: 1 };
/** Entries that are not added in bulk. */
const MOST_ALONE = 8;
/** BullMQ delivers the entries of a dead worker again after 10 s; claims of them fail while the lease in the row lasts. */
const WORKER_OPTIONS = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  maxStalledCount: 1_000,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
};

/** BullMQ on Redis or, without REDIS_URL, on PostgreSQL. An entry is a hint that makes a worker look at a row. */
export class JobQueues {
  readonly #factory: Factory;
  readonly #log: Logger;
  readonly #open = new Map<QueueName, Promise<Queue>>();

  /** `direct` is for worker() on PostgreSQL alone: without it entries are seen 5 s late. */
  constructor(options: {
    databaseUrl: string;
    redisUrl: string | undefined;
    log: Logger;
    direct?: DirectConnection;
  }) {
    const { databaseUrl, redisUrl, direct } = options;
    this.#factory = redisUrl ? onRedis(redisUrl) : onPostgres(databaseUrl, direct);
    this.#log = options.log;
  }

  /** Rejects within 5 s when the queue is unavailable: the dispatcher adds the entries later. */
  async add(name: QueueName, entries: QueueEntry[]): Promise<void> {
    const jobs = entries.map(entry => ({
      name: 'job',
      data: entry,
      opts: { ...OPTIONS, jobId: entryId(entry) },
    }));
    await withDeadline(DEADLINE, async () => {
      const queue = await this.#queue(name);
      // For one entry add() is three times as fast as addBulk(), which makes temporary tables on PostgreSQL.
      if (jobs.length > MOST_ALONE) await queue.addBulk(jobs);
      else await Promise.all(jobs.map(({ name, data, opts }) => queue.add(name, data, opts)));
    });
  }

  /** The entries that the queue has lost, or has as ended. */
  async missing(name: QueueName, entries: QueueEntry[]): Promise<QueueEntry[]> {
    const states = await withDeadline(DEADLINE, async () => {
      const queue = await this.#queue(name);
      return Promise.all(entries.map(entry => queue.getJobState(entryId(entry))));
    });
    return entries.filter((_, i) => ['unknown', 'completed', 'failed'].includes(String(states[i])));
  }

  /** The BullMQ queue, for Bull Board; rejects within 5 s when it is unavailable. */
  open(name: QueueName): Promise<Queue> {
    return withDeadline(DEADLINE, () => this.#queue(name));
  }

  /**
   * Rejects unless the queue's server takes entries, within 5 s; with a QueueRefusal where it refuses the login, and
   * with QueueTakesNothing where it answers, but writes nothing.
   */
  async check(): Promise<void> {
    const refusal = this.#factory.refusal?.();
    if (refusal) throw refusal;
    await withDeadline(DEADLINE, async () => {
      const queue = await this.#queue(QUEUES[0]);
      await (this.#factory.write?.() ?? queue.isPaused());
    });
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

  /** A queue that failed to open would fail for ever: the next call opens another one. */
  #queue(name: QueueName): Promise<Queue> {
    let opening = this.#open.get(name);
    if (!opening) {
      opening = this.#openQueue(name);
      this.#open.set(name, opening);
      opening.catch(() => this.#open.delete(name));
    }
    return opening;
  }

  async #openQueue(name: QueueName): Promise<Queue> {
    const queue = this.#factory.queue(name);
    queue.on('error', error => this.#log.debug({ err: error, queue: name }, 'queue'));
    await queue.waitUntilReady();
    return queue;
  }
}

type Process = (entry: QueueEntry) => Promise<unknown>;

/** The server answers, and lets nobody in with this URL. */
export class QueueRefusal extends Error {
  constructor(cause: Error) {
    super(`Redis refuses the login of REDIS_URL (${cause.message})`, { cause });
  }
}

/** What Redis answers then. */
const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b|invalid password/i;

/** The server answers, and is full or a replica. */
export class QueueTakesNothing extends Error {
  constructor(cause: Error) {
    super(`Redis takes no entries (${cause.message})`, { cause });
  }
}

/** What Redis answers then; MISCONF where it cannot write to its disk. */
const TAKES_NOTHING = /\b(READONLY|OOM|MISCONF)\b/;
/** What a primary answers that became a replica, over connections that are older. */
const isReadOnly = ({ message }: Error) => message.includes('READONLY');

interface Factory {
  /** Undefined unless the server refuses the login. */
  refusal?(): QueueRefusal | undefined;
  /** Fails where an entry would; where there is none, a read does. */
  write?(): Promise<unknown>;
  /** Throws when the backend is unavailable. */
  queue(name: QueueName): Queue;
  worker(name: QueueName, concurrency: number, process: Process): Worker;
  close(): void;
}

function onRedis(url: string): Factory {
  const connect = (options: RedisOptions) => {
    const redis = new Redis(url, {
      // With it a silent connection was detected after 16 s, without it not within 90 s.
      socketTimeout: 20_000,
      connectTimeout: 5_000,
      keepAlive: 5_000,
      retryStrategy: times => Math.min(times * 100, 2_000),
      ...options,
    });
    redis.on('error', () => {});
    return redis;
  };
  // After a failover REDIS_URL leads to the new primary. What failed is not sent again: while there is none, it would pile up.
  const producer = connect({ maxRetriesPerRequest: 1, reconnectOnError: isReadOnly });
  let refusal: QueueRefusal | undefined;
  producer.on('error', error => {
    refusal = REFUSED.test(error.message) ? new QueueRefusal(error) : undefined;
  });
  producer.on('ready', () => {
    refusal = undefined;
  });
  const connections = [producer];
  return {
    refusal: () => refusal,
    write: () =>
      producer.set('bull:check', '', 'PX', CHECK_KEPT_MS).catch((error: Error) => {
        throw TAKES_NOTHING.test(error.message) ? new QueueTakesNothing(error) : error;
      }),
    queue: name => {
      if (refusal) throw refusal;
      if (producer.status !== 'ready') throw new Error('Redis cannot be reached');
      return new Queue(name, { connection: producer, streams: { events: { maxLen: 100 } } });
    },
    worker: (name, concurrency, process) => {
      // What failed is sent again (2), as where the connection breaks: BullMQ would wait for 15 s.
      const reconnectOnError = (error: Error) => isReadOnly(error) && 2;
      const connection = connect({ maxRetriesPerRequest: null, reconnectOnError });
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

function onPostgres(url: string, direct: DirectConnection | undefined): Factory {
  const backend = withBackend(createPostgresBackend);
  const pool = new QueuePool(url, direct);
  return {
    queue: name => new backend.Queue(name, { connection: pool.connection() }) as unknown as Queue,
    worker: (name, concurrency, process) => {
      const options = { ...WORKER_OPTIONS, concurrency, connection: pool.connection() };
      return new backend.Worker<QueueEntry>(
        name,
        job => process(job.data),
        options,
      ) as unknown as Worker;
    },
    close: () => void pool.close().catch(() => {}),
  };
}

const DEADLINE = { ms: 5_000, what: 'the queue' };
/** How long what check() writes is kept. */
const CHECK_KEPT_MS = 60_000;
