import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  /** What is waited for; the words of the error when it does not come. */
  what: string;
  /** Default 30,000: a machine that is busy with other work takes several times as long. */
  timeoutMs?: number;
  /** Default: a twentieth of what was waited so far, from 20 to 250: what takes long is not asked a thousand times. */
  intervalMs?: number;
  signal?: AbortSignal;
}

const SHORTEST_MS = 20;
const LONGEST_MS = 250;

/**
 * Polls until the condition is truthy, and resolves with its value. A condition that throws is false; its last error is
 * the cause of the time-out's error.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions,
): Promise<NonNullable<T>> {
  const { what, timeoutMs = 30_000, intervalMs, signal } = options;
  const since = performance.now();
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
    const waited = performance.now() - since;
    if (waited > timeoutMs) {
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}.`, { cause });
    }
    const pause = Math.min(Math.max(waited / 20, SHORTEST_MS), LONGEST_MS);
    await delay(intervalMs ?? pause, undefined, { signal });
  }
}

/** Lets a wait of the service become longer than one after which nobody is identified again. */
export async function outlastBrevity(): Promise<void> {
  const began = performance.now();
  await waitFor(() => performance.now() - began > 1_500, { what: 'a wait that is not brief' });
}
