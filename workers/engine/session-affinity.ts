import { eq } from 'drizzle-orm';
import { abortable, sleep } from '../../shared/abort.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import type { WorkerContext } from '../context.ts';
import { AutoResetEvent } from './auto-reset-event.ts';

/** Whoever holds the connection claims the job some milliseconds after it was told; after so long nobody does. */
const GRACE_MS = 40;
/** Until what is told has come back, and so has reached the others, too. */
const ECHO_MS = 250;
/** A job that another worker does is looked at when something is told of it, and no more often than this, … */
const LOOK_MS = 1_000;
/** … and this often where nothing is: what is told may be lost. */
const LOOK_ANYWAY_MS = 5_000;
/** Sessions that are remembered to have had a job here. */
const MOST_MET = 1_000;

/**
 * Jobs of a session are done where its connection is. The queue gives an entry to any worker; one that would have to log
 * in first tells the others, and the one that is connected does the job, beside those of its own slots, while the entry
 * stays with the first: its slot stays taken, and operators see the job at work. Nothing rests on it: the claim decides who
 * does the job, and where nobody took it in time the first does. A session's second job on a worker makes it connect as
 * well, so that a busy session is served by all.
 */
export class SessionAffinity {
  readonly #worker: WorkerContext;
  /** Does what an entry names; false where that was not to be had. */
  readonly #run: (entry: QueueEntry) => Promise<boolean>;
  readonly #slots: number;
  /** Jobs that others' entries named. */
  readonly #taken = new Set<Promise<unknown>>();
  /** Jobs offered by this worker; called when the offer has come back. */
  readonly #offered = new Map<string, () => void>();
  readonly #met = new Set<string>();
  readonly #unsubscribe: () => void;

  constructor(
    worker: WorkerContext,
    options: { run(entry: QueueEntry): Promise<boolean>; slots: number },
  ) {
    this.#worker = worker;
    this.#run = options.run;
    this.#slots = options.slots;
    this.#unsubscribe = worker.notifications.on('offer', offer => this.#onOffer(offer));
  }

  /** Does what an entry names, or waits while another worker does. */
  async take(entry: QueueEntry): Promise<void> {
    const { sessions, stopping } = this.#worker;
    const { session } = entry;
    if (!session || sessions.has(session) || stopping.aborted) return void (await this.#run(entry));
    if (this.#met.has(session)) sessions.hasAgent(session).catch(() => {});
    this.#remember(session);
    // Rung by whatever is told of the job.
    const told = new AutoResetEvent();
    const unsubscribe = this.#worker.notifications.on('job', id => {
      if (id === entry.id) told.set();
    });
    this.#offered.set(entry.id, () => told.set());
    try {
      this.#worker.notifications.publish('offer', `${session}/${entry.id}/${entry.epoch}`);
      await told.wait(stopping, ECHO_MS);
      await told.wait(stopping, GRACE_MS);
      if (await this.#run(entry)) return;
      for (let looks = 0; await this.#isAtWork(entry); looks++) {
        // What was begun just now may end just now.
        if (looks > 0) await sleep(stopping, LOOK_MS);
        await told.wait(stopping, LOOK_ANYWAY_MS);
      }
    } finally {
      this.#offered.delete(entry.id);
      unsubscribe();
    }
  }

  /** Takes no more of others' jobs, and waits for those that it has. */
  async close(): Promise<void> {
    this.#unsubscribe();
    await Promise.allSettled(this.#taken);
  }

  #onOffer(offer: string): void {
    const [session = '', id = '', epoch = ''] = offer.split('/');
    const { sessions, stopping } = this.#worker;
    const own = this.#offered.get(id);
    if (own) return void own();
    if (!sessions.has(session)) return;
    if (this.#taken.size >= this.#slots || stopping.aborted) return;
    const taken = this.#run({ id, epoch: Number(epoch), session }).finally(() =>
      this.#taken.delete(taken),
    );
    this.#taken.add(taken);
  }

  #remember(session: string): void {
    if (this.#met.size >= MOST_MET) this.#met.clear();
    this.#met.add(session);
  }

  /** Whether another worker holds the job that this entry names; false when the process is asked to stop. */
  async #isAtWork({ id, epoch }: QueueEntry): Promise<boolean> {
    const { database, stopping } = this.#worker;
    if (stopping.aborted) return false;
    const reading = database.db
      .select({ leaseToken: jobs.leaseToken, epoch: jobs.epoch })
      .from(jobs)
      .where(eq(jobs.id, id))
      // The database is away: then it is looked again.
      .catch(() => [{ leaseToken: 'unknown', epoch }]);
    const [row] = await abortable(reading, stopping).catch(() => []);
    return row !== undefined && row.leaseToken !== null && row.epoch === epoch;
  }
}
