import { DATABASE_DEADLINE, withDeadline } from '../process/deadline.ts';

/** Keys in one query, at most. */
const MAX_BATCH = 100;

interface Waiting<K, R> {
  key: K;
  resolve(found: R): void;
  reject(error: unknown): void;
}

/**
 * Batches the look-ups of a hot path: keys that arrive during a query share the next one, and a single one is not
 * delayed. `ask` returns results in the order of its keys; its error rejects the whole batch. What workers write is grouped by workers/engine/grouped.ts.
 */
export function batchLookups<K, R>(ask: (keys: K[]) => Promise<R[]>): (key: K) => Promise<R> {
  let waiting: Waiting<K, R>[] = [];
  let isAsking = false;

  async function askWaiting(): Promise<void> {
    isAsking = true;
    while (waiting.length > 0) {
      const asked = waiting.slice(0, MAX_BATCH);
      waiting = waiting.slice(MAX_BATCH);
      try {
        const keys = asked.map(({ key }) => key);
        const found = await withDeadline(DATABASE_DEADLINE, () => ask(keys));
        for (const [i, { resolve }] of asked.entries()) resolve(found[i] as R);
      } catch (error) {
        for (const { reject } of asked) reject(error);
      }
    }
    isAsking = false;
  }

  return key =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject });
      if (!isAsking) void askWaiting();
    });
}
