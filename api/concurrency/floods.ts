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
  #second = 0;
  /** By sender, in this second and in the one before. */
  #now = new Map<string, number>();
  #before = new Map<string, number>();
  #passed = new Map<string, number>();

  /** Whether none was refused lately. */
  get isEmpty(): boolean {
    return this.#now.size + this.#before.size === 0;
  }

  /** Whether so many attempts of the sender were refused that further ones are, too. */
  includes(sender: string): boolean {
    this.#turn();
    return [this.#now, this.#before].some(counts => (counts.get(sender) ?? 0) >= REFUSALS);
  }

  /** Counts an attempt that was refused. */
  count(sender: string): void {
    this.#turn();
    this.#now.set(sender, (this.#now.get(sender) ?? 0) + 1);
  }

  /** Whether an attempt is one of the few that are looked at; then it is counted as such. */
  pass(sender: string): boolean {
    this.#turn();
    const passed = this.#passed.get(sender) ?? 0;
    if (passed < PASSES) this.#passed.set(sender, passed + 1);
    return passed < PASSES;
  }

  #turn(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second === this.#second) return;
    this.#before = second === this.#second + 1 ? this.#now : new Map();
    this.#now = new Map();
    this.#passed = new Map();
    this.#second = second;
  }
}
