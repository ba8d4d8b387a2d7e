import type { Notifications } from '../../shared/database/notifications.ts';

/** Changes and ends of credentials. What they let in ends in all processes: cached identities, and open event streams. */
export class Revocations {
  readonly #notifications: Notifications;
  readonly #atOnce = new Set<() => void>();

  constructor(notifications: Notifications) {
    this.#notifications = notifications;
  }

  /** Call it when credentials of a user change or end. */
  announce(username: string): void {
    for (const listener of this.#atOnce) listener();
    this.#notifications.publish('user', username);
  }

  /**
   * Calls the listener for each user whose credentials any process announces; without a name where announcements may have
   * been missed. `atOnce`: it is also called, without a name, before an announcement of this process returns.
   */
  onRevoked(listener: (username?: string) => void, { atOnce = false } = {}): void {
    this.#notifications.on('user', listener);
    this.#notifications.onMissed(() => listener());
    if (atOnce) this.#atOnce.add(listener);
  }
}
