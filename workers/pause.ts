import { setTimeout as delay } from 'node:timers/promises';

/** Waits, or less when the process is asked to stop. */
export async function pauseUnlessStopping(stopping: AbortSignal, ms: number): Promise<void> {
  await delay(ms, undefined, { signal: stopping }).catch(() => {});
}
