import { expect, test } from 'vitest';
import { ByteBudget } from './byte-budget.ts';

const never = new AbortController().signal;
const settled = () => new Promise(resolve => setImmediate(resolve));

/** Takes, and says when it was granted. */
function ask(budget: ByteBudget, user: string, bytes: number, signal = never) {
  const asked = { granted: false, giveBack: () => {}, failed: undefined as unknown };
  budget.reserve(user, bytes, signal).then(
    giveBack => Object.assign(asked, { granted: true, giveBack }),
    (failed: unknown) => Object.assign(asked, { failed }),
  );
  return asked;
}

test('a user waits at the own limit, everybody at the common one', async () => {
  const budget = new ByteBudget({ perUser: 10, inAll: 15, waitMs: 60_000 });
  const first = ask(budget, 'a', 8);
  const second = ask(budget, 'a', 8);
  const other = ask(budget, 'b', 7);
  const third = ask(budget, 'c', 1);
  await settled();
  expect([first, second, other, third].map(one => one.granted)).toEqual([true, false, true, false]);
  first.giveBack();
  first.giveBack();
  await settled();
  expect([second.granted, third.granted]).toEqual([true, false]);
  other.giveBack();
  await settled();
  expect(third.granted).toBe(true);
});

test('a reservation above the limit counts as the limit, so that it is granted', async () => {
  const budget = new ByteBudget({ perUser: 10, inAll: 15, waitMs: 60_000 });
  const big = ask(budget, 'a', 1_000);
  await settled();
  expect(big.granted).toBe(true);
});

test('an aborted wait leaves the queue, one that is too long is refused', async () => {
  const budget = new ByteBudget({ perUser: 10, inAll: 10, waitMs: 50 });
  const first = ask(budget, 'a', 10);
  const leaving = new AbortController();
  const second = ask(budget, 'b', 10, leaving.signal);
  await settled();
  leaving.abort(new Error('left'));
  await settled();
  expect(second.failed).toMatchObject({ message: 'left' });
  await expect(budget.reserve('c', 10, never)).rejects.toMatchObject({ code: 'unavailable' });
  first.giveBack();
  const last = ask(budget, 'd', 10);
  await settled();
  expect(last.granted).toBe(true);
});
