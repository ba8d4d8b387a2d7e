import { sql } from 'drizzle-orm';
import type { Logger } from '../process/log.ts';
import type { Database, Tx } from './connect.ts';

/**
 * Topics of notifications, which may be lost: rows are the truth. `offer`: a session's job for the worker that has its
 * connection; `waiting` and `freed`: a job in a queue, and a slot of it; `segment`: a video has segments for idle
 * workers.
 */
const TOPICS = [
  ...(['job', 'cancel', 'session', 'user', 'offer', 'waiting', 'freed', 'worker'] as const),
  'segment',
] as const;
export type Topic = (typeof TOPICS)[number];

/** Each topic has a channel of its own, so that a process is told only what it listens to. */
export const channelOf = (topic: string) => `windlass_${topic}`;
/** Rate limit: one NOTIFY in so many milliseconds. One per commit halves the throughput of 32 writers (a single lock). */
const WINDOW_MS = 20;
/** publishSoon() waits so long for others: most short commands have ended by then. */
const SOON_MS = 100;
/** After a quiet time so many are sent at once, so that a short job's start and end are not delayed. */
const BURST = 4;
/**
 * Commits that notify wait for each other, and for the disk: after one that took so long, none notifies for a while.
 */
const SLOW_MS = 50;
const WHILE_SLOW_MS = 5_000;
/** What could not be sent is sent again after so long; a process keeps at most so many, without a database. */
const AGAIN_MS = 1_000;
const MAX_KEPT = 10_000;
/** PostgreSQL's payload limit is 8,000 bytes. */
const MAX_PAYLOAD = 7_000;

type Listener = (id: string) => void;

/**
 * Notifies all processes with the commit of the transaction, so that no crash comes between the two. Such commits wait for
 * each other.
 */
export const notifyWith = (tx: Tx, topic: Topic, ids: string[]) =>
  tx.execute(
    sql`select pg_notify(${channelOf(topic)}, id) from json_array_elements_text(${JSON.stringify(ids)}::json) as id`,
  );

/** Publishes and receives notifications. They may be lost, so listeners read the rows every second as well. */
export class Notifications {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #listeners = new Map<string, Set<Listener>>(TOPICS.map(topic => [topic, new Set()]));
  /** What listens to the channels. */
  readonly #receive = Object.fromEntries(
    TOPICS.map(topic => [
      topic,
      (payload: string) => {
        for (const id of payload.split(',')) if (id) this.#tell(topic, id);
      },
    ]),
  ) as Record<Topic, Listener>;
  readonly #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** When #timer fires: performance.now(). */
  #due = Number.POSITIVE_INFINITY;
  /** For the rate limit: performance.now() until which the windows are used up. */
  #sentUntil = 0;
  /** withCommit() lets nobody notify: performance.now(). */
  #slowUntil = 0;
  #isListening = false;
  #isClosed = false;
  /** The last try to send some. */
  #hasFailed = false;

  constructor(database: Database, log: Logger) {
    this.#database = database;
    this.#log = log;
  }

  /** Resolves when this process is told of what it listens to. */
  async listen(): Promise<void> {
    this.#isListening = true;
    const topics = TOPICS.filter(topic => this.#listeners.get(topic)?.size);
    await Promise.all(topics.map(topic => this.#listenTo(topic)));
  }

  /** The channel of a topic is listened to while the topic has listeners, and some seconds longer. */
  on(topic: Topic, listener: Listener): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    listeners.add(listener);
    if (this.#isListening && listeners.size === 1) {
      // Without a connection now: it will listen once there is one.
      this.#listenTo(topic).catch(() => {});
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0)
        this.#database.direct.unlisten(channelOf(topic), this.#receive[topic]);
    };
  }

  /** Calls the listener after a reconnect: notifications may have been missed. */
  onMissed(listener: () => void): void {
    this.#database.direct.onReconnect(listener);
  }

  /** Notifies all processes that listen to the topic, this one too: at once after a quiet time, else within 20 ms. */
  publish(topic: Topic, id: string): void {
    this.#pending.add(`${topic}:${id}`);
    const isQuiet = this.#sentUntil - performance.now() < (BURST - 1) * WINDOW_MS;
    // Not before the end of this turn of the event loop, which may publish more.
    this.#flushWithin(isQuiet ? 0 : WINDOW_MS);
  }

  /** Notifies them within 100 ms, together with the other notifications of that time. */
  publishSoon(topic: Topic, id: string): void {
    this.#pending.add(`${topic}:${id}`);
    this.#flushWithin(SOON_MS);
  }

  /**
   * For a transaction that can notify itself, which saves another one. `commit` is told whether to: not where this
   * process has just notified, or such commits are slow.
   */
  async withCommit<T>(commit: (notifies: boolean) => Promise<T>): Promise<T> {
    const began = performance.now();
    if (began < Math.max(this.#sentUntil, this.#slowUntil)) return commit(false);
    this.#sentUntil = began + WINDOW_MS;
    try {
      return await commit(true);
    } finally {
      const ended = performance.now();
      if (ended - began > SLOW_MS) this.#slowUntil = ended + WHILE_SLOW_MS;
    }
  }

  /** Takes back what publishSoon() has not sent yet. */
  withdraw(topic: Topic, id: string): void {
    this.#pending.delete(`${topic}:${id}`);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#flush();
  }

  #listenTo(topic: Topic): Promise<void> {
    return this.#database.direct.listen(channelOf(topic), this.#receive[topic]);
  }

  #flushWithin(ms: number): void {
    const due = performance.now() + ms;
    if (due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    const flush = () => void this.#flush();
    if (ms === 0) setImmediate(flush);
    else this.#timer = setTimeout(flush, ms).unref();
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#due = Number.POSITIVE_INFINITY;
    if (this.#pending.size === 0) return;
    const payloads: Record<string, string> = {};
    const taken: string[] = [];
    let length = 0;
    for (const entry of this.#pending) {
      length += entry.length + 1;
      if (length > MAX_PAYLOAD) break;
      const [topic = ''] = entry.split(':', 1);
      const channel = channelOf(topic);
      payloads[channel] = `${payloads[channel] ?? ''},${entry.slice(topic.length + 1)}`;
      this.#pending.delete(entry);
      taken.push(entry);
    }
    this.#sentUntil = Math.max(this.#sentUntil, performance.now()) + WINDOW_MS;
    if (this.#pending.size > 0) this.#flushWithin(this.#hasFailed ? AGAIN_MS : WINDOW_MS);
    try {
      // Commits that notify wait for each other; here they do not also wait for the disk. A crash ends the listeners,
      // too.
      await this.#database.sql`
        select pg_notify(key, value), set_config('synchronous_commit', 'off', true)
        from json_each_text(${JSON.stringify(payloads)}::text::json)`;
      this.#hasFailed = false;
      if (this.#pending.size > 0) this.#flushWithin(WINDOW_MS);
    } catch (error) {
      this.#hasFailed = true;
      this.#log.debug({ err: error }, 'a notification was not sent');
      this.#keep(taken);
    }
  }

  /** A connection that was just replaced loses no notification: of a user's rights all processes are to know at once. */
  #keep(entries: string[]): void {
    for (const entry of entries) this.#pending.add(entry);
    for (const oldest of this.#pending) {
      if (this.#pending.size <= MAX_KEPT) break;
      this.#pending.delete(oldest);
    }
    if (!this.#isClosed) this.#flushWithin(AGAIN_MS);
  }

  #tell(topic: string, id: string): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener(id);
  }
}
