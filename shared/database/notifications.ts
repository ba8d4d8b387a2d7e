import type { Logger } from '../log.ts';
import type { Database } from './connect.ts';

/**
 * What is told between processes: a job changed, a job is to be cancelled, a session ended, a user's credentials are no
 * longer what they were, a session's job is offered to whoever is connected. Hints only: rows are the truth.
 */
export type Topic = 'job' | 'cancel' | 'session' | 'user' | 'offer';

const CHANNEL = 'windlass';
/** One NOTIFY per commit halves write throughput with 32 writers (a single lock): so at most one every 20 ms … */
const WINDOW_MS = 20;
/** … save for so many in a row after a quiet time: what begins and ends at once is told at once. */
const BURST = 4;
/** PostgreSQL's payload limit is 8,000 bytes. */
const MAX_PAYLOAD = 7_000;
/** Something must pass on a listening connection, or its silence could not be told from a dead link. */
const PING_MS = 5_000;

type Listener = (id: string) => void;

/** Publishes and receives notifications; what is lost is made up for by whoever listens, by reading the rows each second. */
export class Notifications {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #listeners: Record<Topic, Set<Listener>> = {
    job: new Set(),
    cancel: new Set(),
    session: new Set(),
    user: new Set(),
    offer: new Set(),
  };
  readonly #onMissed = new Set<() => void>();
  #hasListened = false;
  readonly #pending = new Set<string>();
  #window: NodeJS.Timeout | undefined;
  /** performance.now() from which on one a window would have been sent, had they come evenly. */
  #sentUntil = 0;
  #ping: NodeJS.Timeout | undefined;
  #unlisten: (() => Promise<void>) | undefined;

  constructor(database: Database, log: Logger) {
    this.#database = database;
    this.#log = log;
  }

  async listen(): Promise<void> {
    const { unlisten } = await this.#database.listen(
      CHANNEL,
      payload => this.#receive(payload),
      () => this.#onListening(),
    );
    this.#unlisten = unlisten;
    this.#ping = setInterval(() => this.#send(''), PING_MS);
    this.#ping.unref();
  }

  on(topic: Topic, listener: Listener): () => void {
    this.#listeners[topic].add(listener);
    return () => this.#listeners[topic].delete(listener);
  }

  /** Calls back after a time in which notifications may have been missed. */
  onMissed(listener: () => void): void {
    this.#onMissed.add(listener);
  }

  /** Tells everyone, this process too; the first few at once, more within 20 ms together. */
  publish(topic: Topic, id: string): void {
    this.#pending.add(`${topic}:${id}`);
    if (this.#sentUntil - performance.now() < (BURST - 1) * WINDOW_MS) this.#flush();
    else this.#flushSoon();
  }

  /** Tells it within 20 ms, together with whatever else is told until then. */
  publishSoon(topic: Topic, id: string): void {
    this.#pending.add(`${topic}:${id}`);
    this.#flushSoon();
  }

  async close(): Promise<void> {
    clearInterval(this.#ping);
    clearTimeout(this.#window);
    this.#flush();
    await this.#unlisten?.().catch(() => {});
  }

  #onListening(): void {
    if (this.#hasListened) for (const listener of this.#onMissed) listener();
    this.#hasListened = true;
  }

  #flushSoon(): void {
    this.#window ??= setTimeout(() => this.#flush(), WINDOW_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
    if (this.#pending.size === 0) return;
    let payload = '';
    for (const entry of this.#pending) {
      if (payload.length + entry.length > MAX_PAYLOAD) break;
      payload += payload ? `,${entry}` : entry;
      this.#pending.delete(entry);
    }
    this.#sentUntil = Math.max(this.#sentUntil, performance.now()) + WINDOW_MS;
    this.#send(payload);
    if (this.#pending.size > 0) this.#flushSoon();
  }

  #send(payload: string): void {
    this.#database.sql`select pg_notify(${CHANNEL}, ${payload})`.catch((error: unknown) => {
      this.#log.debug({ err: error }, 'a notification was lost');
    });
  }

  #receive(payload: string): void {
    for (const entry of payload.split(',')) {
      const colon = entry.indexOf(':');
      const listeners = this.#listeners[entry.slice(0, colon) as Topic];
      for (const listener of listeners ?? []) listener(entry.slice(colon + 1));
    }
  }
}
