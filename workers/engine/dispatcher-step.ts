import { setTimeout as delay } from 'node:timers/promises';
import { failureLevel } from '../../shared/database/failure-level.ts';
import type { Logger } from '../../shared/process/log.ts';

/** A round waits this long for a step and then goes on. Normally all steps share one connection. */
const SLOW_STEP_MS = 200;
/** soon() begins a step no more often: what comes meanwhile is done at once. */
const PAUSE_MS = 20;

/** One step of each dispatcher round. A step that is slow, hangs or fails does not delay the others. */
export class DispatcherStep<T = unknown> {
  readonly #name: string;
  readonly #log: Logger;
  readonly #run: () => Promise<T>;
  #began = 0;
  #isClosed = false;
  #soon: NodeJS.Timeout | undefined;
  /** What it failed with the last time, if it did: told once, not every second. */
  #failure: string | undefined;
  /** What the last run returned; undefined where it failed. */
  result: T | undefined;
  running: Promise<void> | undefined;

  constructor(name: string, log: Logger, run: () => Promise<T>) {
    this.#name = name;
    this.#log = log;
    this.#run = run;
  }

  /**
   * Resolves when the step has ended or takes too long. A step that takes too long goes on, and is not started again
   * meanwhile.
   */
  async run(): Promise<void> {
    if (this.#isClosed) return;
    this.running ??= this.#attempt();
    const timer = new AbortController();
    const late = delay(SLOW_STEP_MS, undefined, { signal: timer.signal }).catch(() => {});
    await Promise.race([this.running, late]);
    timer.abort();
  }

  /** Begins it at once, or within 20 ms; while it is under way, after that. */
  soon(): void {
    const pause = Math.max(0, this.#began + PAUSE_MS - performance.now());
    this.#soon ??= setTimeout(async () => {
      await this.running;
      this.#soon = undefined;
      await this.run();
    }, pause);
  }

  /** Begins it no more, and waits for its end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#soon);
    await this.running;
  }

  async #attempt(): Promise<void> {
    this.#began = performance.now();
    this.result = undefined;
    try {
      this.result = await this.#run();
      this.#failure = undefined;
    } catch (err) {
      const failure = String(err);
      const level = failure === this.#failure ? 'debug' : failureLevel(err);
      this.#failure = failure;
      this.#log[level]({ err, step: this.#name }, 'a step of the dispatcher failed');
    } finally {
      this.running = undefined;
    }
  }
}
