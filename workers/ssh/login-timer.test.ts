import { afterEach, expect, test, vi } from 'vitest';
import { LoginTimer } from './login-timer.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** When a timer is late, to which `work` happens; it has 20 s, and 110 s if it is extended. */
async function lateAt(work: (timer: LoginTimer) => Promise<void>): Promise<number> {
  vi.useFakeTimers();
  const since = performance.now();
  let late = Number.POSITIVE_INFINITY;
  const timer = new LoginTimer({ ms: 20_000, longestMs: 110_000 }, () => {
    late = Math.min(late, performance.now() - since);
  });
  await work(timer);
  await vi.advanceTimersByTimeAsync(200_000);
  return Math.round(late / 1_000);
}

test('a host has no more time for all of a login however often it is extended', async () => {
  const often = lateAt(async timer => {
    for (let n = 0; n < 30; n++) {
      timer.extend();
      await vi.advanceTimersByTimeAsync(10_000);
    }
  });
  expect(await often).toBe(110);
});

test('after its user has answered a host has the time of a step, if that ends later', async () => {
  const answered = lateAt(async timer => {
    await timer.whileUserAnswers(vi.advanceTimersByTimeAsync(105_000));
    timer.extend();
  });
  expect(await answered).toBe(125);
});
