import { expect, test } from 'vitest';
import { FlowWindow } from './flow-window.ts';

const KIB = 1 << 10;
const MIB = 1 << 20;
/** The agent's credit at its start. */
const FIRST = 256 * KIB;

interface Link {
  bytesPerMs: number;
  roundTripMs: number;
}

/** Endless output over such a link: the bytes delivered in these ms, and those in flight at the end. */
function simulate(window: FlowWindow, { bytesPerMs, roundTripMs }: Link, from: number, ms: number) {
  const allowed = [{ total: FIRST, at: from }];
  let sent = 0;
  let last = 0;
  for (let now = from; now < from + ms; now++) {
    const total = allowed.filter(({ at }) => at + roundTripMs <= now).at(-1)?.total ?? FIRST;
    const bytes = Math.min(bytesPerMs, total - sent);
    sent += bytes;
    const more = bytes > 0 && window.receive(bytes, now);
    if (more) {
      allowed.push({ total: more.total, at: now });
      last = more.total;
    }
  }
  return { delivered: sent, inFlight: last - sent };
}

test('a fast link is full within half a second', () => {
  const { delivered } = simulate(
    new FlowWindow(),
    { bytesPerMs: 500 * KIB, roundTripMs: 5 },
    0,
    500,
  );
  expect(delivered).toBeGreaterThan(0.8 * 500 * 500 * KIB);
});

test('over a slow link no more is in flight than it delivers in a second, at its full rate', () => {
  const { delivered, inFlight } = simulate(
    new FlowWindow(),
    { bytesPerMs: 2_000, roundTripMs: 100 },
    0,
    20_000,
  );
  expect(delivered).toBeGreaterThan(0.95 * 20_000 * 2_000);
  expect(inFlight).toBeLessThan(2_400_000);
});

test('a link that becomes slow is detected before all granted bytes have arrived', () => {
  const window = new FlowWindow();
  let now = 0;
  let total = 0;
  for (; now < 500; now++) total = window.receive(500 * KIB, now)?.total ?? total;
  let received = 500 * 500 * KIB;
  expect(total - received).toBeGreaterThan(8 * MIB);
  for (; total - received > 2 * MIB && now < 20_000; now++) {
    received += 2_000;
    total = window.receive(2_000, now)?.total ?? total;
  }
  expect(now).toBeLessThan(9_000);
});

test('the minimum is always granted, however long nothing arrived', () => {
  const window = new FlowWindow();
  expect(window.receive(FIRST, 3_600_000)?.total).toBe(2 * FIRST);
  expect(window.receive(FIRST, 7_200_000)?.total).toBe(3 * FIRST);
});
