const FIRST_MS = 100;
const LONGEST_MS = 20_000;

/**
 * How long to wait before a start, in milliseconds, after so many in a row that came to nothing:
 * 100 ms for the first two, then doubled from 500 ms up to 20 s.
 */
export function chooseRestartDelay(failures: number): number {
  return failures < 2 ? FIRST_MS : Math.min(500 * 2 ** (failures - 2), LONGEST_MS);
}
