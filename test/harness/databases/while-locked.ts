import type postgres from 'postgres';
import type { Stack } from '../stacks/stack.ts';
import { waitFor } from '../wait-for.ts';
import { openStackDatabase } from './database.ts';

/** Locks rows with `hold`, sends the requests of `ask`, and commits once all of them wait for the locks. */
export async function whileLocked<T>(
  stack: Stack,
  hold: (sql: postgres.Sql) => Promise<unknown>,
  ask: () => Promise<T>[],
): Promise<T[]> {
  const [holder, watcher] = [openStackDatabase(stack), openStackDatabase(stack)];
  try {
    await holder`begin`;
    await hold(holder);
    const asked = ask();
    await waitFor(
      async () => {
        // Not the worker, which renews its lease.
        const waiting = await watcher`
          select 1 from pg_stat_activity
          where wait_event_type = 'Lock'
            and (query ~ '^select.*for (no key )?(update|share)' or query like 'update "sessions"%')`;
        return waiting.length >= asked.length;
      },
      { what: 'the requests to wait for the rows' },
    );
    await holder`commit`;
    return await Promise.all(asked);
  } finally {
    await Promise.all([holder.end(), watcher.end()]);
  }
}
