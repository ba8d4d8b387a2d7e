import { DATABASE_DEADLINE, withDeadline } from '../deadline.ts';

/** Most look-ups that are asked with one query. */
const MOST = 100;

interface Waiting<K, R> {
  key: K;
  resolve(found: R): void;
  reject(error: unknown): void;
}

/**
 * A look-up of a hot path. What is looked up while an answer is awaited is asked together, with one query: alone it
 * waits for nobody, in a burst a round trip is shared. `ask` gives what it finds in the order of its keys; where it
 * fails, all of them do.
 */
export function batchLookups<K, R>(ask: (keys: K[]) => Promise<R[]>): (key: K) => Promise<R> {
  let waiting: Waiting<K, R>[] = [];
  let isAsking = false;

  async function askWaiting(): Promise<void> {
    isAsking = true;
    while (waiting.length > 0) {
      const asked = waiting.slice(0, MOST);
      waiting = waiting.slice(MOST);
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
