import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  /** What is waited for; the words of the error when it does not come. */
  what: string;
  /** Default 10,000. */
  timeoutMs?: number;
  /** Default 20. */
  intervalMs?: number;
  signal?: AbortSignal;
}

/**
 * Polls until the condition gives something truthy, and resolves with it. A condition that throws
 * has not come true; its last error is the cause of the time-out's.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions,
): Promise<NonNullable<T>> {
  const { what, timeoutMs = 10_000, intervalMs = 20, signal } = options;
  const end = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    signal?.throwIfAborted();
    if (performance.now() > end) {
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}.`, { cause });
    }
    await delay(intervalMs, undefined, { signal });
  }
}
