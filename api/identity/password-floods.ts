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

  /** Whether none was refused lately: then nothing is one of a flood. */
  get isEmpty(): boolean {
    return this.#floods.isEmpty && this.#basicFloods.isEmpty;
  }

  /** Whether a login from the address is one of a flood, and to be refused before it is looked at; then it is counted. */
  isFlood(address: string): boolean {
    if (!this.#floods.includes(address)) return false;
    this.#floods.count(address);
    this.#tellFlood(address);
    return true;
  }

  /** Tells the audit, since none of its logins is looked at. */
  #tellFlood(address: string): void {
    const told = { key: address, username: undefined, address, requestId: undefined };
    this.#refused.record({ ...told, action: 'login' }).catch(() => {});
  }

  /**
   * The same of a pair that was sent as Basic. One that was right in this process goes on. Programs send theirs again and again: a
   * few are looked at, so that a right one gets in, and a flood of them keeps nobody's login away.
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
