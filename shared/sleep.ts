import { setTimeout as delay } from 'node:timers/promises';

/** Waits, or less when the signal is aborted. */
export async function sleep(signal: AbortSignal, ms: number): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
