import { sleep } from '../process/abort.ts';
import { withDeadline } from '../process/deadline.ts';
import type { Logger } from '../process/log.ts';

const EVERY_MS = 5_000;
const DEADLINE_MS = 5_000;

export interface Dependency {
  /** In words that begin a sentence: `the database`. */
  name: string;
  /** Rejects while it is unreachable. */
  check(): Promise<unknown>;
  /** Why it is unreachable, where more is known than that. */
  explain?: (error: unknown) => string | undefined;
}

/**
 * Logs once when something that the process depends on becomes unreachable, and once when it is back. What fails for it
 * meanwhile can then be logged at debug: a night without a database must not fill a disk with lines.
 */
export function watchDependencies(
  dependencies: Dependency[],
  { log, stopping, everyMs = EVERY_MS }: { log: Logger; stopping: AbortSignal; everyMs?: number },
): void {
  for (const dependency of dependencies) void watch(dependency, { log, stopping, everyMs });
}

async function watch(
  { name, check, explain }: Dependency,
  { log, stopping, everyMs }: { log: Logger; stopping: AbortSignal; everyMs: number },
): Promise<void> {
  let unreachableSince: number | undefined;
  // A check that hangs is not begun again beside itself: on files each would hold one of Node's few threads.
  let pending: Promise<unknown> | undefined;
  const ask = () => {
    pending ??= Promise.resolve()
      .then(check)
      .finally(() => {
        pending = undefined;
      });
    return pending;
  };
  for (;;) {
    // First of all: connections are still being made when a process starts.
    await sleep(stopping, everyMs);
    if (stopping.aborted) return;
    try {
      await withDeadline({ ms: DEADLINE_MS, what: name }, ask);
      if (unreachableSince !== undefined) {
        const seconds = Math.round((performance.now() - unreachableSince) / 1_000);
        log.info({ dependency: name, seconds }, `${name} is back`);
        unreachableSince = undefined;
      }
    } catch (err) {
      if (stopping.aborted) return;
      const level = unreachableSince === undefined ? 'warn' : 'debug';
      const message = [`${name} is unreachable`, explain?.(err)].filter(Boolean).join(': ');
      log[level]({ err, dependency: name }, message);
      unreachableSince ??= performance.now();
    }
  }
}
