import { CountsPerSecond } from './counts-per-second.ts';

/** Refusals of one sender in one second, after which its other attempts are refused unread. */
export const REFUSALS = 20;
/** Attempts of such a sender in one second that are looked at nevertheless, where pass() is asked. */
const PASSES = 2;

/**
 * Who goes on sending what is refused, in this process. Each refusal costs the reading of a body and look-ups, which thousands a
 * second take from everybody else; see middleware/refuse-floods.ts. It goes on until the sender has sent fewer for a second: a burst
 * of look-ups at the start of each second delayed others by 20 ms.
 */
export class Floods {
  readonly #refused = new CountsPerSecond();
  readonly #passed = new CountsPerSecond();

  /** Whether none was refused lately. */
  get isEmpty(): boolean {
    return this.#refused.isEmpty;
  }

  /** Whether REFUSALS attempts of the sender were refused in a second, so that further ones are, too. */
  includes(sender: string): boolean {
    return this.#refused.peak(sender) >= REFUSALS;
  }

  /** Counts an attempt that was refused. */
  count(sender: string): void {
    this.#refused.add(sender);
  }

  /** Whether an attempt is one of the few that are looked at. */
  pass(sender: string): boolean {
    return this.#passed.add(sender) <= PASSES;
  }
}
