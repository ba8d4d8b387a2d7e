import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/** Interval of the checks. DuckDB allocates up to 100 MB in 50 ms. */
const CHECK_MS = 25;
/** Linux reports memory in pages. With larger pages the limit is larger. */
const PAGE_BYTES = 4_096;

/** Calls back when the child exceeds its memory limit; without /proc there is no check. Stop it with clearInterval(). */
export function watchMemory(
  child: Pick<ChildProcess, 'pid'>,
  limit: number,
  onExceeded: () => void,
): NodeJS.Timeout {
  return setInterval(() => {
    void readFile(`/proc/${child.pid}/statm`, 'latin1').then(
      statm => {
        if (Number(statm.split(' ')[1]) * PAGE_BYTES > limit) onExceeded();
      },
      () => {},
    );
  }, CHECK_MS);
}
