import { DATABASE_DEADLINE, withDeadline } from '../process/deadline.ts';

/** Keys in one query, at most. */
const MAX_BATCH = 100;

interface Waiting<K, R> {
  key: K;
  callers: { resolve(found: R): void; reject(error: unknown): void }[];
}

/**
 * Batches the look-ups of a hot path: keys that arrive during a query share the next one, and a single one is not
 * delayed. Equal keys are one. `ask` returns results in the order of its keys;
 * its error rejects the whole batch. What workers write is grouped by workers/engine/grouped.ts.
 */
export function batchLookups<K, R>(ask: (keys: K[]) => Promise<R[]>): (key: K) => Promise<R> {
  /** By the JSON of their keys. */
  const waiting = new Map<string, Waiting<K, R>>();
  let isAsking = false;

  async function askWaiting(): Promise<void> {
    isAsking = true;
    while (waiting.size > 0) {
      const asked = [...waiting.entries()].slice(0, MAX_BATCH);
      for (const [name] of asked) waiting.delete(name);
      const keys = asked.map(([, { key }]) => key);
      const callersOf = asked.map(([, { callers }]) => callers);
      try {
        const found = await withDeadline(DATABASE_DEADLINE, () => ask(keys));
        for (const [i, callers] of callersOf.entries())
          for (const { resolve } of callers) resolve(found[i] as R);
      } catch (error) {
        for (const { reject } of callersOf.flat()) reject(error);
      }
    }
    isAsking = false;
  }

  return key =>
    new Promise((resolve, reject) => {
      const name = JSON.stringify(key);
      const same: Waiting<K, R> = waiting.get(name) ?? { key, callers: [] };
      same.callers.push({ resolve, reject });
      waiting.set(name, same);
      if (!isAsking) void askWaiting();
    });
}
