import { expect, test } from 'vitest';
import { GIVE_UP_SECONDS, pauseAfter } from './retry-schedule.ts';

test('attempts are 5 s to 6 h apart, ever further, and more than a dozen fit into the patience', () => {
  const [soonest, latest] = [0, 0.999].map(random =>
    Array.from({ length: 30 }, (_, n) => pauseAfter(n + 1, random)),
  );
  for (const pauses of [soonest ?? [], latest ?? []]) {
    expect(pauses[0]).toBeGreaterThanOrEqual(5);
    expect(pauses[0]).toBeLessThanOrEqual(10);
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
    expect(pauses.at(-1)).toBe(6 * 3_600);
    const within = pauses.slice(0, 15).reduce((sum, pause) => sum + pause, 0);
    expect(within).toBeLessThan(GIVE_UP_SECONDS);
  }
});
