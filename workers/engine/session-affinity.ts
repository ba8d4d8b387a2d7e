import { eq } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { abortable, sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';
import { AutoResetEvent } from './auto-reset-event.ts';

/** A connected worker claims an offered job within milliseconds: after so long none will. */
const ACCEPT_MS = 40;
/** How long to wait for the worker's own offer: when it comes back, the others have it too. */
const ECHO_MS = 250;
/** The row of a job that another worker runs is read after each notification about it, at most this often, … */
const READ_MS = 1_000;
/** … and at least this often, since notifications may be lost. */
const READ_ANYWAY_MS = 5_000;
/** Sessions remembered to have had a job here. */
const MAX_SEEN_SESSIONS = 1_000;

/**
 * Runs a session's jobs of one queue on the worker that is connected to its host (decision 22). The claim alone decides
 * which worker runs a job: offers may be lost.
 */
export class SessionAffinity {
  readonly #worker: WorkerContext;
  readonly #queue: QueueName;
  /** Runs the job of an entry; false if it could not be claimed. */
  readonly #run: (entry: QueueEntry) => Promise<boolean>;
  readonly #slots: number;
  /** Jobs that other workers offered and this one runs. */
  readonly #accepted = new Set<Promise<unknown>>();
  /** By job id, called when this worker's own offer has come back. */
  readonly #onEcho = new Map<string, () => void>();
  readonly #seenSessions = new LRUCache<string, true>({ max: MAX_SEEN_SESSIONS });
  readonly #unsubscribe: () => void;
  /** Accepts no offers meanwhile. */
  isDraining = false;

  constructor(
    worker: WorkerContext,
    options: { run(entry: QueueEntry): Promise<boolean>; queue: QueueName; slots: number },
  ) {
    this.#worker = worker;
    this.#run = options.run;
    this.#queue = options.queue;
    this.#slots = options.slots;
    // Whoever has no slots makes no offers and accepts none.
    const onOffer = (offer: string) => this.#onOffer(offer);
    this.#unsubscribe = options.slots > 0 ? worker.notifications.on('offer', onOffer) : () => {};
  }

  /** Runs the job of a queue entry, or waits while another worker runs it. */
  async process(entry: QueueEntry): Promise<void> {
    const { sessions, stopping } = this.#worker;
    const { session } = entry;
    if (!session || sessions.has(session) || stopping.aborted) return void (await this.#run(entry));
    if (this.#seenSessions.has(session)) sessions.hasAgent(session).catch(() => {});
    this.#seenSessions.set(session, true);
    const notified = new AutoResetEvent();
    const unsubscribe = this.#worker.notifications.on('job', id => {
      if (id === entry.id) notified.set();
    });
    this.#onEcho.set(entry.id, () => notified.set());
    try {
      this.#worker.notifications.publish(
        'offer',
        `${session}/${entry.id}/${entry.epoch}/${this.#queue}`,
      );
      await notified.wait(stopping, ECHO_MS);
      await notified.wait(stopping, ACCEPT_MS);
      if (await this.#run(entry)) return;
      for (let reads = 0; await this.#runsElsewhere(entry); reads++) {
        // No pause before the first: a short job may end at once.
        if (reads > 0) await sleep(stopping, READ_MS);
        await notified.wait(stopping, READ_ANYWAY_MS);
      }
    } finally {
      this.#onEcho.delete(entry.id);
      unsubscribe();
    }
  }

  /** Accepts no more offers, and waits for the jobs that were accepted. */
  async close(): Promise<void> {
    this.#unsubscribe();
    await Promise.allSettled(this.#accepted);
  }

  #onOffer(offer: string): void {
    const [session = '', id = '', epoch = '', queue = ''] = offer.split('/');
    if (queue !== this.#queue) return;
    const { sessions, stopping } = this.#worker;
    const onEcho = this.#onEcho.get(id);
    if (onEcho) return void onEcho();
    if (!sessions.has(session)) return;
    if (this.#accepted.size >= this.#slots || this.isDraining || stopping.aborted) return;
    const running = this.#run({ id, epoch: Number(epoch), session }).finally(() =>
      this.#accepted.delete(running),
    );
    this.#accepted.add(running);
  }

  /** Whether another worker has the lease of the entry's job; false when this worker stops. */
  async #runsElsewhere({ id, epoch }: QueueEntry): Promise<boolean> {
    const { database, stopping } = this.#worker;
    if (stopping.aborted) return false;
    const reading = database.db
      .select({ leaseToken: jobs.leaseToken, epoch: jobs.epoch })
      .from(jobs)
      .where(eq(jobs.id, id))
      // The database is unreachable: the row is read again later.
      .catch(() => [{ leaseToken: 'unknown', epoch }]);
    const [row] = await abortable(reading, stopping).catch(() => []);
    return row !== undefined && row.leaseToken !== null && row.epoch === epoch;
  }
}
