import { WindlassError } from '../../shared/errors/errors.ts';

/** Refused logins of one address in one second, after which its others are refused unread. */
export const REFUSALS = 20;

/**
 * Who goes on sending logins though they are refused. Each refusal costs the reading of a body and looks at several locks, which
 * thousands a second take from everybody else; see middleware/refuse-login-floods.ts. It goes on until the address has sent fewer for a
 * second: a burst of look-ups at the start of each second delayed others by 20 ms.
 */
export class LoginFloods {
  #second = 0;
  /** By address, in this second and in the one before. */
  #now = new Map<string, number>();
  #before = new Map<string, number>();

  /** Whether an attempt of the address is one of a flood. It is counted then. */
  refuses(address: string): boolean {
    this.#turn();
    const isFlood = [this.#now, this.#before].some(
      counts => (counts.get(address) ?? 0) >= REFUSALS,
    );
    if (isFlood) this.#count(address);
    return isFlood;
  }

  /** Counts an attempt that ended in this error. */
  count(address: string, error: unknown): void {
    if (!(error instanceof WindlassError && error.code === 'too_many_requests')) return;
    this.#turn();
    this.#count(address);
  }

  #count(address: string): void {
    this.#now.set(address, (this.#now.get(address) ?? 0) + 1);
  }

  #turn(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second === this.#second) return;
    this.#before = second === this.#second + 1 ? this.#now : new Map();
    this.#now = new Map();
    this.#second = second;
  }
}
