import { expect, test } from 'vitest';
import { FlowWindow } from './flow-window.ts';

const KIB = 1 << 10;
const MIB = 1 << 20;
/** What an agent sends unasked. */
const FIRST = 256 * KIB;

interface Link {
  bytesPerMs: number;
  /** There and back. */
  roundTripMs: number;
}

/** A run that prints without end over such a link: bytes brought in these ms, and how long a byte took at the end. */
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
  return { brought: sent, underWay: last - sent };
}

test('a fast link is full within half a second', () => {
  const { brought } = simulate(new FlowWindow(), { bytesPerMs: 500 * KIB, roundTripMs: 5 }, 0, 500);
  expect(brought).toBeGreaterThan(0.8 * 500 * 500 * KIB);
});

test('of a slow link no more is taken than it brings in a second, and no less is brought', () => {
  const { brought, underWay } = simulate(
    new FlowWindow(),
    { bytesPerMs: 2_000, roundTripMs: 100 },
    0,
    20_000,
  );
  expect(brought).toBeGreaterThan(0.95 * 20_000 * 2_000);
  expect(underWay).toBeLessThan(2_400_000);
});

test('a link that was fast and becomes slow is taken for slow before all that was allowed has come', () => {
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

test('the least is always allowed, however long nothing came', () => {
  const window = new FlowWindow();
  expect(window.receive(FIRST, 3_600_000)?.total).toBe(2 * FIRST);
  expect(window.receive(FIRST, 7_200_000)?.total).toBe(3 * FIRST);
});
