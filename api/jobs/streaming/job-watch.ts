import { sql } from 'drizzle-orm';
import type { Database } from '../../../shared/database/connect.ts';
import { failureLevel } from '../../../shared/database/failure-level.ts';
import type { Notifications } from '../../../shared/database/notifications.ts';
import { prepareOnce } from '../../../shared/database/prepare-once.ts';
import { jobs } from '../../../shared/database/schema.ts';
import { writeTexts } from '../../../shared/database/text-arrays.ts';
import { type JobSummary, summaryColumns } from '../../../shared/jobs/job-record.ts';
import { DATABASE_DEADLINE, withDeadline } from '../../../shared/process/deadline.ts';
import type { Logger } from '../../../shared/process/log.ts';

/** The rows are polled this often, in case a notification was lost. */
const POLL_MS = 1_000;
/**
 * A change between a caller's read and its subscription is not noticed: new subscriptions are read after this time, when
 * most short jobs have ended. Reading them at once would be one more query for every launch.
 */
const CATCH_UP_MS = 100;

type Known = Pick<JobSummary, 'id' | 'version' | 'finished'>;

interface Waiter {
  known: Known;
  resolve(row: JobSummary | undefined): void;
}

/**
 * Waits for changes of jobs. All waiters of a process share one query each second; a notification makes it come at once,
 * for the jobs that it names.
 */
export class JobWatch {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Jobs to be read by the next query. */
  readonly #queued = new Set<string>();
  /** Subscribed to since the last catch-up. */
  readonly #added = new Set<string>();
  #catchUp: NodeJS.Timeout | undefined;
  readonly #stop: () => void;
  #reading = false;

  constructor(context: { database: Database; notifications: Notifications; log: Logger }) {
    this.#database = context.database;
    this.#log = context.log;
    const timer = setInterval(() => this.#enqueue([...this.#waiters.keys()]), POLL_MS);
    const unsubscribe = context.notifications.on('job', id => {
      if (this.#waiters.has(id)) this.#enqueue([id]);
    });
    this.#stop = () => {
      clearInterval(timer);
      clearTimeout(this.#catchUp);
      unsubscribe();
    };
  }

  /** The job's row as soon as it is newer than this one; undefined when the signal is aborted first or the row is gone. */
  async nextChange(known: Known, signal: AbortSignal): Promise<JobSummary | undefined> {
    if (signal.aborted) return undefined;
    return new Promise(resolve => {
      const settle = (row: JobSummary | undefined) => {
        this.#remove(known.id, waiter);
        signal.removeEventListener('abort', abort);
        resolve(row);
      };
      const abort = () => settle(undefined);
      const waiter = { known, resolve: settle };
      signal.addEventListener('abort', abort, { once: true });
      this.#add(waiter);
    });
  }

  /** Calls back with the row at each change after this one, and with undefined once it was removed; until unsubscribed. */
  subscribe(known: Known, onChange: (row: JobSummary | undefined) => void): () => void {
    const waiter = {
      known,
      resolve: (row: JobSummary | undefined) => {
        if (row) waiter.known = row;
        else unsubscribe();
        onChange(row);
      },
    };
    const unsubscribe = () => this.#remove(known.id, waiter);
    this.#add(waiter);
    return unsubscribe;
  }

  /** The row once the job has ended, or as it is when the signal is aborted. */
  async untilEnded(row: JobSummary, signal: AbortSignal): Promise<JobSummary> {
    let current = row;
    while (!current.finished) {
      const next = await this.nextChange(current, signal);
      if (!next) return current;
      current = next;
    }
    return current;
  }

  close(): void {
    this.#stop();
  }

  #add(waiter: Waiter): void {
    const { id } = waiter.known;
    const waiters = this.#waiters.get(id) ?? new Set<Waiter>();
    this.#waiters.set(id, waiters.add(waiter));
    this.#added.add(id);
    this.#catchUp ??= setTimeout(() => this.#catchUpAdded(), CATCH_UP_MS).unref();
  }

  #remove(id: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(id);
    if (waiters?.delete(waiter) && waiters.size === 0) this.#waiters.delete(id);
  }

  #catchUpAdded(): void {
    this.#catchUp = undefined;
    const ids = [...this.#added].filter(id => this.#waiters.has(id));
    this.#added.clear();
    this.#enqueue(ids);
  }

  /** Reads these rows, together with what is asked for while a query is running. */
  #enqueue(ids: string[]): void {
    for (const id of ids) this.#queued.add(id);
    if (!this.#reading) void this.#readQueued();
  }

  async #readQueued(): Promise<void> {
    this.#reading = true;
    try {
      while (this.#queued.size > 0) {
        const ids = [...this.#queued];
        this.#queued.clear();
        await this.#read(ids);
      }
    } catch (error) {
      // The next poll reads them again.
      this.#log[failureLevel(error)](
        { err: error },
        'jobs that clients wait for could not be read',
      );
    } finally {
      this.#reading = false;
    }
  }

  async #read(ids: string[]): Promise<void> {
    const rows = await withDeadline(DATABASE_DEADLINE, () =>
      selectJobs(this.#database.db).execute({ ids: writeTexts(ids) }),
    );
    const found = new Map(rows.map(row => [row.id, row]));
    for (const id of ids) {
      const row = found.get(id);
      for (const waiter of [...(this.#waiters.get(id) ?? [])]) {
        if (!row || isNewer(row, waiter.known)) waiter.resolve(row);
      }
    }
  }
}

/**
 * A query that began before the caller's own read may return an older row. An end is never older, and nothing but another
 * end is newer than it, though an asynchronous failover may give it a lower version.
 */
export function isNewer(row: Known, known: Known): boolean {
  const isEnd = row.finished !== null && known.finished === null;
  const isBegunAgain = row.finished === null && known.finished !== null;
  return isEnd || (row.version > known.version && !isBegunAgain);
}

/** The ids are one array in text form: a list of parameters would make a statement for each length. */
const selectJobs = prepareOnce(db =>
  db
    .select(summaryColumns)
    .from(jobs)
    .where(sql`${jobs.id} = any(${sql.placeholder('ids')}::text[])`)
    .prepare('watched_jobs'),
);
