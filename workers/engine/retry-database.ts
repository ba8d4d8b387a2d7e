import { isDatabaseDown, isDeadlock } from '../../shared/database/connect.ts';

/** How long a worker that holds results waits for the database to come back. */
const OUTLAST_MS = 120_000;

/**
 * Repeats what failed because the database was away, or chose it as the one to fail of two that waited for each other;
 * `tries` tells the step that an earlier one may have been committed.
 */
export async function retryDatabase<T>(step: (tries: number) => Promise<T>): Promise<T> {
  const until = performance.now() + OUTLAST_MS;
  for (let tries = 0; ; tries++) {
    try {
      return await step(tries);
    } catch (error) {
      if (!(isDatabaseDown(error) || isDeadlock(error)) || performance.now() > until) throw error;
      await new Promise(resolve => setTimeout(resolve, 250));
    }
  }
}
