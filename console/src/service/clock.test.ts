import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readClock, serviceNow } from './clock.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

beforeEach(() => {
  // A whole second, as those in `Date`.
  vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);
/** An answer of a service whose clock is ahead. */
const answer = (ahead: number) => {
  const shown = new Date(Date.now() + ahead).toUTCString();
  readClock(new Response('', { headers: { Date: shown } }));
};
const ahead = () => Math.round((serviceNow() - Date.now()) / SECOND) * SECOND;

test('one wrong date is forgotten once the answers after it agree', () => {
  answer(0);
  answer(HOUR);
  expect(ahead()).toBe(HOUR);
  for (let n = 0; n < 10; n++) {
    pass(5 * SECOND);
    answer(0);
  }
  expect(ahead()).toBe(0);
  // A clock that was set back is followed, too.
  for (let n = 0; n < 10; n++) {
    pass(5 * SECOND);
    answer(-HOUR);
  }
  expect(ahead()).toBe(-HOUR);
});

test('an answer that the browser has kept sets nothing back', () => {
  const made = new Date(Date.now());
  pass(HOUR);
  answer(0);
  for (let n = 0; n < 20; n++) {
    pass(5 * SECOND);
    readClock(new Response('', { headers: { Date: made.toUTCString() } }));
  }
  expect(ahead()).toBe(0);
});
