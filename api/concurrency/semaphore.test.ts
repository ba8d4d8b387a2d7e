import { expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

test('runs so many tasks at once and the others in order, whether they fail or not', async () => {
  const semaphore = new Semaphore(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const all = [0, 1, 2, 3].map(n =>
    semaphore.run(async () => {
      begun.push(n);
      await new Promise<void>(resolve => {
        ends[n] = resolve;
      });
      if (n % 2 === 0) throw new Error(`failed ${n}`);
      return n;
    }),
  );
  const outcomes = Promise.allSettled(all);
  const settle = async (n: number) => {
    ends[n]?.();
    await all[n]?.catch(() => {});
    await new Promise(resolve => setImmediate(resolve));
  };
  await new Promise(resolve => setImmediate(resolve));
  expect(begun).toEqual([0, 1]);
  await settle(0);
  expect(begun).toEqual([0, 1, 2]);
  await settle(2);
  await settle(1);
  await settle(3);
  expect(begun).toEqual([0, 1, 2, 3]);
  expect((await outcomes).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
  expect(await semaphore.run(async () => 'free again')).toBe('free again');
});
