import { and, inArray, isNull } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { type Notifications, writeOffer } from '../../shared/database/notifications.ts';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import type { Entry, JobQueues } from '../../shared/jobs/queue.ts';
import type { Logger } from '../../shared/log.ts';

/** A worker that was offered a job takes it at once, or within this or twice this the queue has it. */
const LOOK_MS = 60;
/** Sessions whose worker is remembered. */
const MOST_SESSIONS = 10_000;

type Offered = Entry & { queue: QueueName; session: string };

/**
 * Hands committed jobs over to the workers: through the queue, save that a session's job is first offered to the worker
 * that carried its last one. That has a connection to the host, which another would have to make. All of this is a hint:
 * whoever comes first takes the row, and what nobody hears of the dispatcher sends again.
 */
export class HandOver {
  readonly #database: Database;
  readonly #notifications: Notifications;
  readonly #queues: JobQueues;
  readonly #log: Logger;
  /** Which worker carried the last job of a session, the longest unused first. */
  readonly #workers = new Map<string, string>();
  #offered: Offered[] = [];
  #offeredBefore: Offered[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(context: {
    database: Database;
    notifications: Notifications;
    queues: JobQueues;
    log: Logger;
  }) {
    this.#database = context.database;
    this.#notifications = context.notifications;
    this.#queues = context.queues;
    this.#log = context.log;
  }

  /** Learns from a job that has ended who serves its session. */
  note({ session, worker, queue }: Pick<JobRow, 'session' | 'worker' | 'queue'>): void {
    if (!session || !worker || queue !== 'remote') return;
    this.#workers.delete(session);
    this.#workers.set(session, worker);
    const [oldest] = this.#workers.keys();
    if (this.#workers.size > MOST_SESSIONS && oldest) this.#workers.delete(oldest);
  }

  /** Call once the job's row is committed; never fails. A row of epoch 0 waits for the dispatcher. */
  begin({ id, epoch, queue, session }: JobRow): void {
    if (epoch === 0) return;
    const worker = queue === 'remote' && session ? this.#workers.get(session) : undefined;
    if (!worker || !session) {
      this.#add(queue as QueueName, [{ id, epoch }]);
      return;
    }
    this.#notifications.publish('offer', writeOffer({ id, epoch, worker }));
    this.#offered.push({ id, epoch, queue: queue as QueueName, session });
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS);
  }

  /** What is offered still goes to the queue. */
  close(): void {
    clearInterval(this.#timer);
    this.#addAll([...this.#offeredBefore, ...this.#offered]);
  }

  async #look(): Promise<void> {
    const due = this.#offeredBefore;
    this.#offeredBefore = this.#offered;
    this.#offered = [];
    if (this.#offeredBefore.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (due.length === 0) return;
    const left = await this.#findLeft(due).catch(() => due);
    // Their worker has ended, is full, or was not reached.
    for (const { session } of left) this.#workers.delete(session);
    this.#addAll(left);
  }

  async #findLeft(offered: Offered[]): Promise<Offered[]> {
    const ids = offered.map(({ id }) => id);
    const rows = await this.#database.db
      .select({ id: jobs.id, epoch: jobs.epoch })
      .from(jobs)
      .where(and(inArray(jobs.id, ids), isNull(jobs.attempt), isNull(jobs.finished)));
    const epochs = new Map(rows.map(row => [row.id, row.epoch]));
    return offered.filter(({ id, epoch }) => epochs.get(id) === epoch);
  }

  #addAll(entries: Offered[]): void {
    for (const queue of new Set(entries.map(entry => entry.queue)))
      this.#add(
        queue,
        entries.filter(entry => entry.queue === queue).map(({ id, epoch }) => ({ id, epoch })),
      );
  }

  #add(queue: QueueName, entries: Entry[]): void {
    this.#queues.add(queue, entries).catch((error: unknown) => {
      this.#log.debug(
        { err: error, jobs: entries },
        'the queue does not take entries; the dispatcher will send them',
      );
    });
  }
}
