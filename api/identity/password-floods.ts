import { WindlassError } from '../../shared/errors/errors.ts';
import { Floods, REFUSALS } from '../concurrency/floods.ts';
import type { AuditedRefusals } from './audited-refusals.ts';
import type { RememberedPasswords, SentPassword } from './remembered-passwords.ts';

/** The addresses that go on sending passwords although they are locked. */
export class PasswordFloods {
  readonly #remembered: RememberedPasswords;
  readonly #refused: AuditedRefusals;
  readonly #floods = new Floods();
  readonly #basicFloods = new Floods();

  constructor(remembered: RememberedPasswords, refused: AuditedRefusals) {
    this.#remembered = remembered;
    this.#refused = refused;
  }

  /** Counts a password of a locked account or address. */
  count(address: string): void {
    this.#floods.count(address);
  }

  /** Whether no password was refused lately: then no request belongs to a flood. */
  get isEmpty(): boolean {
    return this.#floods.isEmpty && this.#basicFloods.isEmpty;
  }

  /** Whether a login from the address belongs to a flood, so that it is refused without a check. If so, counts it. */
  isFlood(address: string): boolean {
    if (!this.#floods.includes(address)) return false;
    this.#floods.count(address);
    this.#tellFlood(address);
    return true;
  }

  /** Records the flood in the audit, since none of its logins is checked. */
  #tellFlood(address: string): void {
    const told = { key: address, username: undefined, address, requestId: undefined };
    this.#refused.record({ ...told, action: 'login' }).catch(() => {});
  }

  /**
   * Whether a password that was sent as Basic belongs to a flood; one that was right in this process never does. Programs send
   * theirs again and again: a few are checked, so that a right one gets in. Counted apart, they keep nobody from logging in.
   */
  isBasicFlood(sent: SentPassword): boolean {
    const { address } = sent;
    const isFlood = this.#floods.includes(address) || this.#basicFloods.includes(address);
    const isKnown = isFlood && this.#remembered.findHash(sent) !== undefined;
    if (!isFlood || isKnown || this.#basicFloods.pass(address)) return false;
    this.#basicFloods.count(address);
    return true;
  }
}

export const tooManyRefused = () =>
  new WindlassError('too_many_requests', {
    detail: `more than ${REFUSALS} passwords a second from this address are refused.`,
    hint: 'Wait two seconds, and send one at a time.',
    headers: { 'Retry-After': '2' },
  });
