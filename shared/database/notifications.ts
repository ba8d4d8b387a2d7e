import type { Logger } from '../log.ts';
import type { Database } from './connect.ts';

/**
 * Notifications between processes: a job changed, a job is to be cancelled, a session ended, a user's credentials changed,
 * a session's job is offered to the worker that has its connection, a job waits in a queue, a slot of it became free. They are
 * hints and may be lost; rows are the truth.
 */
export type Topic = 'job' | 'cancel' | 'session' | 'user' | 'offer' | 'waiting' | 'freed';

const CHANNEL = 'windlass';
/** Rate limit: one NOTIFY in so many milliseconds. One per commit halves the throughput of 32 writers (a single lock). */
const WINDOW_MS = 20;
/** After a quiet time so many are sent at once, so that a short job's start and end are not delayed. */
const BURST = 4;
/** PostgreSQL's payload limit is 8,000 bytes. */
const MAX_PAYLOAD = 7_000;
/** Interval of empty notifications, which keep a listening connection from looking dead (see SILENCE_MS). */
const PING_MS = 5_000;

type Listener = (id: string) => void;

/** Publishes and receives notifications. They may be lost, so listeners read the rows every second as well. */
export class Notifications {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #listeners: Record<Topic, Set<Listener>> = {
    job: new Set(),
    cancel: new Set(),
    session: new Set(),
    user: new Set(),
    offer: new Set(),
    waiting: new Set(),
    freed: new Set(),
  };
  readonly #onMissed = new Set<() => void>();
  #hasListened = false;
  readonly #pending = new Set<string>();
  #window: NodeJS.Timeout | undefined;
  /** For the rate limit: performance.now() until which the windows are used up. */
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

  /** Calls the listener after a reconnect: notifications may have been missed. */
  onMissed(listener: () => void): void {
    this.#onMissed.add(listener);
  }

  /** Notifies all processes, this one too: at once after a quiet time, else within 20 ms. */
  publish(topic: Topic, id: string): void {
    this.#pending.add(`${topic}:${id}`);
    if (this.#sentUntil - performance.now() < (BURST - 1) * WINDOW_MS) this.#flush();
    else this.#flushSoon();
  }

  /** Notifies all processes within 20 ms, together with the other notifications of that time. */
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
