import { WindlassError } from '../../shared/errors/errors.ts';

/** Refused passwords of one address in one second, after which its others are refused unread. */
const REFUSALS = 20;

/**
 * Who goes on sending passwords though they are refused. Each refusal costs the reading of a body and looks at several locks, which
 * thousands a second take from everybody else; see middleware/refuse-floods.ts. It goes on until the address has sent fewer for a
 * second: a burst of look-ups at the start of each second delayed others by 20 ms.
 */
export class LoginFloods {
  #second = 0;
  /** By address, in this second and in the one before. */
  #now = new Map<string, number>();
  #before = new Map<string, number>();

  /** Whether none was refused lately. */
  get isEmpty(): boolean {
    return this.#now.size + this.#before.size === 0;
  }

  /** Whether so many attempts of the address were refused that further ones are, too. */
  includes(address: string): boolean {
    this.#turn();
    return [this.#now, this.#before].some(counts => (counts.get(address) ?? 0) >= REFUSALS);
  }

  /** Counts an attempt that was refused. */
  count(address: string): void {
    this.#turn();
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

export const tooManyRefused = () =>
  new WindlassError('too_many_requests', {
    detail: `Too many requests: more than ${REFUSALS} passwords a second from this address are refused.`,
    hint: 'Wait two seconds, and send one at a time.',
    headers: { 'Retry-After': '2' },
  });
