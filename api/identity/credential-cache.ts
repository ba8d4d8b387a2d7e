import { LRUCache } from 'lru-cache';
import type { Scope } from './api-tokens.ts';
import type { Revocations } from './revocations.ts';
import type { User } from './user.ts';

/** All processes must notice a revocation within a second, even when its notification is lost. */
const TTL_MS = 500;
const MAX_ENTRIES = 10_000;

export interface Identity {
  user: User;
  /** The credential: a password, or a token of this scope. */
  by: 'password' | 'token';
  scope?: Scope;
  /** The id of an API token. */
  token?: string;
  /** When the credential ends, if it does by itself. */
  ends?: Date;
}

/** Caches the users of Authorization headers, so that a burst of requests costs one query. */
export class CredentialCache {
  readonly #identities = new LRUCache<string, Identity>({ max: MAX_ENTRIES, ttl: TTL_MS });
  #generation = 0;

  constructor(revocations: Revocations) {
    const forget = () => {
      this.#generation++;
      this.#identities.clear();
    };
    revocations.onRevoked(forget, { atOnce: true });
    // Expired headers hold passwords: they do not stay in memory.
    setInterval(() => this.#identities.purgeStale(), TTL_MS).unref();
  }

  /** Changes with each change of credentials: an earlier identification may no longer hold. */
  get generation(): number {
    return this.#generation;
  }

  /** `key`: the header, and what else it depends on. */
  find(key: string): Identity | undefined {
    return this.#identities.get(key);
  }

  /** `generation`: that of the time before the identity was looked up. */
  set(key: string, identity: Identity, generation: number): void {
    if (generation === this.#generation) this.#identities.set(key, identity);
  }
}
