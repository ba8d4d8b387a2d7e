import { expect, test } from 'vitest';
import { waitFor } from '../../test/harness/wait-for.ts';
import { ProgressWriter } from './progress-writer.ts';

test('progress is written one after another, the newest next, also after a write that failed', async () => {
  const written: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const writer = new ProgressWriter(({ progress }) => {
    written.push(progress);
    return new Promise((resolve, reject) =>
      ends.push(error => (error ? reject(error) : resolve())),
    );
  });
  const countWrites = (count: number) =>
    waitFor(() => ends.length === count, { what: `${count} writes` });
  writer.set(0.1);
  writer.set(0.2);
  await countWrites(1);
  writer.set(0.3);
  writer.set(0.4);
  // Three times as long as two writes are apart.
  await expect(
    waitFor(() => ends.length > 1, { what: 'a write beside the first', timeoutMs: 1_200 }),
  ).rejects.toThrow('a write beside the first');
  ends[0]?.();
  await countWrites(2);
  writer.set(7);
  ends[1]?.(new Error('the database is unreachable'));
  await countWrites(3);
  expect(written).toEqual([0.2, 0.4, 1]);
  writer.close();
});
