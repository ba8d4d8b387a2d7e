const FIRST_MS = 100;
const LONGEST_MS = 20_000;

/**
 * The delay before a restart in milliseconds, by the number of failed starts in a row: 100 ms for the first two, then
 * doubled from 500 ms up to 20 s.
 */
export function chooseRestartBackoff(failures: number): number {
  return failures < 2 ? FIRST_MS : Math.min(500 * 2 ** (failures - 2), LONGEST_MS);
}
