import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** Verified passwords that one process remembers, each of an address. */
const MAX_REMEMBERED = 10_000;

/** What a sender claims, and from where. */
export interface SentPassword {
  username: string;
  password: string;
  /** As clientAddress() gives it. */
  address: string;
}

interface Remembered {
  passwordHash: string;
  mac: string;
  /** Whether the audit has an entry of it. */
  isAudited: boolean;
}

/**
 * The passwords that were right: argon2id runs once for a pair and an address, which are then remembered as an HMAC under a key
 * of this process. It is bound to the stored hash, so that a changed password or a new user of the name invalidates it. From
 * other addresses a password is verified as any other: who guesses there would else be told at once, and as often as they like.
 */
export class RememberedPasswords {
  readonly #key = randomBytes(32);
  readonly #verified = new LRUCache<string, Remembered>({
    max: MAX_REMEMBERED,
  });

  /** Whether a password of the user was right from this address. */
  has(sent: SentPassword): boolean {
    return this.#verified.has(placeOf(sent));
  }

  /** The hash for which this one was right from this address. */
  findHash(sent: SentPassword): string | undefined {
    const known = this.#verified.get(placeOf(sent));
    if (!known) return undefined;
    return this.#mac(known.passwordHash, sent) === known.mac ? known.passwordHash : undefined;
  }

  add(passwordHash: string, sent: SentPassword): void {
    const mac = this.#mac(passwordHash, sent);
    this.#verified.set(placeOf(sent), { passwordHash, mac, isAudited: false });
  }

  isAudited(sent: SentPassword): boolean {
    return this.#verified.get(placeOf(sent))?.isAudited ?? false;
  }

  setAudited(sent: SentPassword, isAudited: boolean): void {
    const known = this.#verified.get(placeOf(sent));
    if (known) known.isAudited = isAudited;
  }

  /** Tells what was sent from everything else, without the password. */
  identify(sent: SentPassword): string {
    return `${sent.address} ${this.#mac('', sent)}`;
  }

  #mac(passwordHash: string, { username, password }: SentPassword): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([passwordHash, username, password]))
      .digest('base64');
  }
}

/** No user's name has a space. */
const placeOf = ({ username, address }: SentPassword) => `${username} ${address}`;
