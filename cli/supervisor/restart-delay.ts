const FIRST_MS = 100;
const LONGEST_MS = 20_000;
/** A process that ends this long after its start has run well. */
export const SETTLED_AFTER_MS = 5_000;
/** Keeps a process that dies repeatedly after it was ready from restarting in a tight loop; it is back within 2 s. */
const LONGEST_READY_DELAY_MS = 1_000;

/** How a process has fared: what decides how soon it is started again. */
export interface RestartHistory {
  /** Starts in a row that have ended before it was ready. */
  readonly unreadyStarts: number;
  /** Times in a row that it ended soon after its start, though it was ready. */
  readonly earlyEnds: number;
}

/** What `history` is after an end, `ranMs` after the start. */
export function addEnd(
  { unreadyStarts, earlyEnds }: RestartHistory,
  { wasReady, ranMs }: { wasReady: boolean; ranMs: number },
): RestartHistory {
  if (!wasReady) return { unreadyStarts: unreadyStarts + 1, earlyEnds };
  return { unreadyStarts: 0, earlyEnds: ranMs < SETTLED_AFTER_MS ? earlyEnds + 1 : 0 };
}

/** The delay in milliseconds before the next start. */
export const restartDelay = ({ unreadyStarts, earlyEnds }: RestartHistory): number =>
  unreadyStarts > 0
    ? chooseRestartBackoff(unreadyStarts - 1)
    : Math.min(chooseRestartBackoff(earlyEnds), LONGEST_READY_DELAY_MS);

/**
 * The delay before a restart in milliseconds, by the number of failed starts in a row: 100 ms for the first two, then
 * doubled from 500 ms up to 20 s.
 */
export function chooseRestartBackoff(failures: number): number {
  return failures < 2 ? FIRST_MS : Math.min(500 * 2 ** (failures - 2), LONGEST_MS);
}
