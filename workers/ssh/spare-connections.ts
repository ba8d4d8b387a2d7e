import type { Notifications } from '../../shared/database/notifications.ts';

/** A connection that was not used for so long is closed where another worker has an older one of its session. */
const SPARE_MS = 10_000;

/** One worker's connection of a session. */
export interface Held {
  /** Date.now() when it was opened: of two, the older one stays. */
  openedAt: number;
  /** For how long nobody has used it, in milliseconds; zero while it is used or must stay. */
  idleMs(): number;
  close(): void;
}

/**
 * Closes all connections of an idle session but one: each is some processes on the host. A worker whose connection is idle tells the
 * others so, once. Whoever has an older one answers with that, and whoever has a younger one that is idle, too, closes it.
 */
export class SpareConnections {
  readonly #worker: string;
  readonly #notifications: Notifications;
  readonly #find: (sid: string) => Held | undefined;
  /** Connections that the others were told of since their last use. */
  readonly #told = new WeakSet<Held>();
  readonly unsubscribe: () => void;

  constructor(options: {
    /** Its id. */
    worker: string;
    notifications: Notifications;
    find(sid: string): Held | undefined;
  }) {
    this.#worker = options.worker;
    this.#notifications = options.notifications;
    this.#find = options.find;
    this.unsubscribe = options.notifications.on('held', held => this.#onHeld(held));
  }

  /** Tells the others of a connection that has become idle. */
  look(sid: string, held: Held): void {
    if (held.idleMs() < SPARE_MS) this.#told.delete(held);
    else if (!this.#told.has(held)) this.#tell(sid, held);
  }

  #tell(sid: string, held: Held): void {
    this.#told.add(held);
    this.#notifications.publish('held', `${sid}/${held.openedAt}/${this.#worker}`);
  }

  #onHeld(text: string): void {
    const [sid = '', openedAt, worker = ''] = text.split('/');
    const mine = this.#find(sid);
    if (!mine || worker === this.#worker) return;
    const age = Number(openedAt) - mine.openedAt;
    const isMineOlder = age > 0 || (age === 0 && worker > this.#worker);
    if (isMineOlder) this.#tell(sid, mine);
    else if (mine.idleMs() >= SPARE_MS) mine.close();
  }
}
