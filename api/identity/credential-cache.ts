import type { Notifications } from '../../shared/database/notifications.ts';
import type { Scope } from './api-tokens.ts';
import type { User } from './password-verifier.ts';

/** A revocation must be seen by all processes within a second, also where its notification is lost. */
const KNOWN_MS = 500;
/** Clients that ask at the same time; more are looked up each time. */
const MOST = 10_000;

export interface Identity {
  user: User;
  /** What showed it: a password, or a token of this scope. */
  by: 'password' | 'token';
  scope?: Scope;
}

/** Whose an Authorization header is, for as long as a burst of requests takes: each would cost a query of its own. */
export class CredentialCache {
  readonly #known = new Map<string, { identity: Identity; until: number }>();
  readonly #notifications: Notifications;

  constructor(notifications: Notifications) {
    this.#notifications = notifications;
    notifications.on('user', () => this.#known.clear());
    notifications.onMissed(() => this.#known.clear());
    setInterval(() => this.#sweep(), KNOWN_MS).unref();
  }

  find(authorization: string): Identity | undefined {
    const known = this.#known.get(authorization);
    return known && known.until > performance.now() ? known.identity : undefined;
  }

  set(authorization: string, identity: Identity): void {
    if (this.#known.size >= MOST) return;
    this.#known.set(authorization, { identity, until: performance.now() + KNOWN_MS });
  }

  /** To be called when credentials of a user were changed or taken away: the next request looks again, here and everywhere. */
  invalidate(username: string): void {
    this.#known.clear();
    this.#notifications.publish('user', username);
  }

  /** No header, and so no password, is held for longer than it is used. */
  #sweep(): void {
    const now = performance.now();
    for (const [authorization, { until }] of this.#known)
      if (until <= now) this.#known.delete(authorization);
  }
}
