import { expect, test } from 'vitest';
import { TransferQueue } from './transfer-queue.ts';

test('of thousands the listener is told once: when they come, change, and go', () => {
  const queue = new TransferQueue<{ key: number; state: string; name: string }>(
    () => new Promise(() => {}),
  );
  const names = Array.from({ length: 20_000 }, (_, n) => `file ${n}`);
  let told = 0;
  queue.subscribe(() => told++);
  queue.add(names, (key, name) => ({ key, name, state: 'exists' }));
  expect(queue.list.map(({ name }) => name)).toEqual(names);
  expect(told).toBe(1);
  const keys = queue.list.map(({ key }) => key);
  // The first of them is sent.
  queue.change(keys, { state: 'waits' });
  expect([queue.list[0]?.state, queue.list.at(-1)?.state, told]).toEqual(['sends', 'waits', 2]);
  queue.remove(keys);
  expect([queue.list, told]).toEqual([[], 3]);
});
