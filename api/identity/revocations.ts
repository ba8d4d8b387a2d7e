import type { Tx } from '../../shared/database/connect.ts';
import { type Notifications, notifyWith } from '../../shared/database/notifications.ts';

/**
 * Ends what the credentials of a user let in, in all processes: call it in the transaction that changes or ends them, and
 * Revocations.forget() after it.
 */
export const revoke = (tx: Tx, username: string) => notifyWith(tx, 'user', [username]);

/** What to end in this process where credentials are changed or ended in any: cached identities, and open event streams. */
export class Revocations {
  readonly #notifications: Notifications;
  readonly #atOnce = new Set<() => void>();

  constructor(notifications: Notifications) {
    this.#notifications = notifications;
  }

  /** Call it once a revoke() has committed: this process does not wait until it is notified. */
  forget(): void {
    for (const listener of this.#atOnce) listener();
  }

  /**
   * Calls the listener for each user whose credentials any process revokes; without a name where notifications may have been
   * missed. `atOnce`: forget() calls it too, without a name.
   */
  onRevoked(listener: (username?: string) => void, { atOnce = false } = {}): void {
    this.#notifications.on('user', listener);
    this.#notifications.onMissed(() => listener());
    if (atOnce) this.#atOnce.add(listener);
  }
}
