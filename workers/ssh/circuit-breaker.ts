import { abortable } from '../../shared/abort.ts';
import { WindlassError } from '../../shared/errors.ts';

/** So many connections that fail in a row shut the gate. */
const FAILURES = 3;
/** The longest wait before the next probe, jittered down to its half: a host that is back is noticed within this. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 6_000;

interface Waiting {
  admit(): void;
  refuse(error: unknown): void;
}

/**
 * What stands before every connection of this worker to one host: some at once, as sshd drops what comes in crowds and
 * storms get an address banned. While the host cannot be reached one probe at a time goes through, after a growing wait;
 * whoever comes meanwhile shares its outcome. A refused login proves that the host is there.
 */
export class CircuitBreaker {
  readonly #limit: number;
  readonly #waiting = new Set<Waiting>();
  #busy = 0;
  #failures = 0;
  /** performance.now() before which no probe is made. */
  #probeAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `limit`: connections that are made at once. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get isOpen(): boolean {
    return this.#failures >= FAILURES;
  }

  /**
   * Calls `attempt` when it may go, once. Throws what it throws, the signal's reason, or the error of the probe that went
   * in its place.
   */
  async pass<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { isProbe } = await this.#enter(signal);
    try {
      const result = await attempt();
      this.#failures = 0;
      return result;
    } catch (error) {
      if (!(error instanceof WindlassError)) throw error;
      if (error.code !== 'remote_connection_failed') this.#failures = 0;
      // One that set out before the gate was shut says nothing new.
      else if (isProbe || !this.isOpen) this.#fail(error);
      throw error;
    } finally {
      this.#busy--;
      this.#admit();
    }
  }

  /** Resolves with the right to go, which pass() gives back. */
  async #enter(signal: AbortSignal): Promise<{ isProbe: boolean }> {
    signal.throwIfAborted();
    let admitted: { isProbe: boolean } | undefined;
    let leave = () => {};
    const turn = new Promise<{ isProbe: boolean }>((resolve, reject) => {
      const place: Waiting = {
        admit: () => {
          admitted = { isProbe: this.isOpen };
          resolve(admitted);
        },
        refuse: reject,
      };
      this.#waiting.add(place);
      leave = () => this.#waiting.delete(place);
    });
    this.#admit();
    try {
      return await abortable(turn, signal);
    } catch (error) {
      leave();
      // Aborted just as it was admitted.
      if (admitted) {
        this.#busy--;
        this.#admit();
      }
      throw error;
    }
  }

  #admit(): void {
    for (const place of this.#waiting) {
      if (this.#busy >= this.#room()) break;
      this.#waiting.delete(place);
      this.#busy++;
      place.admit();
    }
    if (!this.isOpen || this.#busy > 0 || this.#waiting.size === 0 || this.#timer) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#admit();
      },
      Math.max(0, this.#probeAt - performance.now()) + 1,
    );
  }

  #room(): number {
    if (!this.isOpen) return this.#limit;
    return performance.now() >= this.#probeAt ? 1 : 0;
  }

  #fail(error: WindlassError): void {
    this.#failures++;
    if (!this.isOpen) return;
    const longest = Math.min(FIRST_WAIT_MS * 2 ** (this.#failures - FAILURES), LONGEST_WAIT_MS);
    this.#probeAt = performance.now() + longest * (0.5 + Math.random() / 2);
    for (const place of [...this.#waiting]) {
      this.#waiting.delete(place);
      place.refuse(error);
    }
  }
}

/** The gates of a worker, by address and port: two entries of one host share its gate. */
export class CircuitBreakers {
  readonly #limit: number;
  readonly #gates = new Map<string, CircuitBreaker>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  of({ address, port }: { address: string; port: number }): CircuitBreaker {
    const key = `${address}:${port}`;
    const gate = this.#gates.get(key) ?? new CircuitBreaker(this.#limit);
    this.#gates.set(key, gate);
    return gate;
  }
}
