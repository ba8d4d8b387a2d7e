import { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import { DroppedBeforeLogin, FailedAfterCredential } from './dial.ts';

/** Failures in a row that open the circuit. */
const FAILURE_THRESHOLD = 3;
/** The longest wait before the next probe, jittered down to its half. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 6_000;
/**
 * The longest wait for a host that drops connections before the login, as for a banned address or too many connections.
 */
const LONGEST_DROPPED_WAIT_MS = 15_000;

interface Waiter {
  admit(): void;
  reject(error: unknown): void;
}

/**
 * Limits this worker's connection attempts to one host: sshd drops connections in crowds, and storms get an address
 * banned. After failures in a row one probe at a time runs, after growing waits, and all waiters share its error
 * (decision 18). A login that was refused, or that failed after the credential, proves that the host is reachable.
 */
export class CircuitBreaker {
  readonly #limit: number;
  readonly #waiters = new Set<Waiter>();
  #running = 0;
  #failures = 0;
  /** performance.now() before which no probe runs. */
  #probeAt = 0;
  #probeTimer: NodeJS.Timeout | undefined;

  /** `limit`: attempts that run at once. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get state(): 'closed' | 'open' | 'half-open' {
    if (this.#failures < FAILURE_THRESHOLD) return 'closed';
    return performance.now() < this.#probeAt ? 'open' : 'half-open';
  }

  /**
   * Runs `attempt` once the circuit allows it. Throws its error, the signal's reason, or the error of the probe that
   * ran instead.
   */
  async execute<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { isProbe } = await this.#waitForPermit(signal);
    try {
      const result = await attempt();
      this.#failures = 0;
      return result;
    } catch (error) {
      if (!(error instanceof WindlassError)) throw error;
      const isDown =
        error.code === 'remote_connection_failed' &&
        !(error.cause instanceof FailedAfterCredential);
      if (!isDown) this.#failures = 0;
      // Attempts that began before the circuit opened are no news.
      else if (isProbe || this.state === 'closed') this.#countFailure(error);
      throw error;
    } finally {
      this.#releasePermit();
    }
  }

  async #waitForPermit(signal: AbortSignal): Promise<{ isProbe: boolean }> {
    signal.throwIfAborted();
    let permit: { isProbe: boolean } | undefined;
    let leave = () => {};
    const admitted = new Promise<{ isProbe: boolean }>((resolve, reject) => {
      const waiter: Waiter = {
        admit: () => {
          permit = { isProbe: this.state !== 'closed' };
          resolve(permit);
        },
        reject,
      };
      this.#waiters.add(waiter);
      leave = () => this.#waiters.delete(waiter);
    });
    this.#admitWaiters();
    try {
      return await abortable(admitted, signal);
    } catch (error) {
      leave();
      // Aborted just as it was admitted.
      if (permit) this.#releasePermit();
      throw error;
    }
  }

  #releasePermit(): void {
    this.#running--;
    this.#admitWaiters();
  }

  #admitWaiters(): void {
    for (const waiter of this.#waiters) {
      if (this.#running >= this.#capacity()) break;
      this.#waiters.delete(waiter);
      this.#running++;
      waiter.admit();
    }
    const needsProbe = this.state !== 'closed' && this.#running === 0 && this.#waiters.size > 0;
    if (!needsProbe || this.#probeTimer) return;
    this.#probeTimer = setTimeout(
      () => {
        this.#probeTimer = undefined;
        this.#admitWaiters();
      },
      Math.max(0, this.#probeAt - performance.now()) + 1,
    );
  }

  #capacity(): number {
    return { closed: this.#limit, open: 0, 'half-open': 1 }[this.state];
  }

  #countFailure(error: WindlassError): void {
    this.#failures++;
    if (this.state === 'closed') return;
    const exponent = this.#failures - FAILURE_THRESHOLD;
    const isDropped = error.cause instanceof DroppedBeforeLogin;
    const most = isDropped ? LONGEST_DROPPED_WAIT_MS : LONGEST_WAIT_MS;
    const longest = Math.min(FIRST_WAIT_MS * 2 ** exponent, most);
    this.#probeAt = performance.now() + longest * (0.5 + Math.random() / 2);
    for (const waiter of [...this.#waiters]) {
      this.#waiters.delete(waiter);
      waiter.reject(error);
    }
  }
}

interface At {
  address: string;
  port: number;
}

/** Identifies a machine by the hops to it: behind two jump hosts one address may be two machines. */
export const describeHops = (hops: At[]) =>
  hops.map(({ address, port }) => `${address}:${port}`).join(' > ');

/** The circuit breakers of a worker, by the way to each hop: two entries of one host share one. */
export class CircuitBreakers {
  readonly #limit: number;
  readonly #breakers = new Map<string, CircuitBreaker>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  of(hops: At[]): CircuitBreaker {
    const key = describeHops(hops);
    const breaker = this.#breakers.get(key) ?? new CircuitBreaker(this.#limit);
    this.#breakers.set(key, breaker);
    return breaker;
  }
}
