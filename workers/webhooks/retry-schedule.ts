/** Seconds after the first, second, … failed attempt; the last one from then on. */
const PAUSES = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 21_600];
/** After so long a message that was not taken is given up, and so is a receiver that took none. */
export const GIVE_UP_SECONDS = 3 * 86_400;
/** Who was tried in no such time was not refusing: the service itself was off. Twice the longest pause. */
export const GAP_SECONDS = 43_200;

/** Seconds from this attempt, counted from 1, to the next. Jittered, so that many do not come at once. */
export function pauseAfter(attempt: number, random = Math.random()): number {
  const pause = PAUSES[Math.min(attempt, PAUSES.length) - 1] ?? 0;
  const next = PAUSES[Math.min(attempt + 1, PAUSES.length) - 1] ?? pause;
  return Math.round(pause + random * 0.2 * (next - pause));
}
