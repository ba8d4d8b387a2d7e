import type { Queue, Worker } from 'bullmq';
import type { DirectConnection } from '../database/direct-connection.ts';
import type { JobRow } from '../database/schema.ts';
import { withDeadline } from '../process/deadline.ts';
import type { Logger } from '../process/log.ts';
import { isJobKind, jobDefinition, QUEUES, type QueueName } from './catalog.ts';
import type { QueueBackend } from './queue-backend.ts';
import { onPostgres } from './queue-on-postgres.ts';
import { onRedis } from './queue-on-redis.ts';

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
const DEADLINE = { ms: 5_000, what: 'the queue' };
/** Entries that are not added in bulk. */
const MAX_ALONE = 8;
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
  readonly #backend: QueueBackend;
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
    this.#backend = redisUrl ? onRedis(redisUrl, options.log) : onPostgres(databaseUrl, direct);
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
      if (jobs.length > MAX_ALONE) await queue.addBulk(jobs);
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
   * Rejects unless the queue's server takes entries, within 5 s; with a QueueRefusal where it refuses the login, a
   * QueueTlsFault where TLS with it fails, and QueueTakesNothing where it answers, but writes nothing.
   */
  async check(): Promise<void> {
    const refusal = this.#backend.refusal?.();
    if (refusal) throw refusal;
    await withDeadline(DEADLINE, async () => {
      const queue = await this.#queue(QUEUES[0]);
      await (this.#backend.write?.() ?? queue.isPaused());
    });
  }

  /** The maxmemory-policy of a Redis that may drop entries; undefined where it drops none, or does not tell. */
  async evictionPolicy(): Promise<string | undefined> {
    return this.#backend.evictionPolicy?.();
  }

  worker(
    name: QueueName,
    concurrency: number,
    process: (entry: QueueEntry) => Promise<unknown>,
  ): Worker {
    const options = { ...WORKER_OPTIONS, concurrency };
    return this.#backend.worker<QueueEntry>(name, job => process(job.data), options);
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()];
    await Promise.allSettled(
      open.map(queue => withDeadline(DEADLINE, async () => (await queue).close())),
    );
    this.#backend.close();
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
    const queue = this.#backend.queue(name);
    queue.on('error', error => this.#log.debug({ err: error, queue: name }, 'queue'));
    await queue.waitUntilReady();
    return queue;
  }
}
