import { expect, test } from 'vitest';
import { waitFor } from '../../test/harness/wait-for.ts';
import { FreeSpace } from './free-space.ts';

test('a disk that hangs is asked once, and what it said last holds until it answers', async () => {
  const answers: ((free: number) => void)[] = [];
  const disk = {
    freeBytes: () => new Promise<number>(resolve => answers.push(resolve)),
  };
  const space = new FreeSpace(disk, 1);
  const first = space.read();
  answers[0]?.(5);
  expect(await first).toBe(5);
  const isAskedAgain = async () => {
    expect(await space.read()).toBe(5);
    return answers.length === 2;
  };
  await waitFor(isAskedAgain, { what: 'another reading' });
  const began = performance.now();
  for (let n = 0; n < 100; n++) expect(await space.read()).toBe(5);
  expect([answers.length, performance.now() - began < 1_000]).toEqual([2, true]);
  answers[1]?.(0);
  await expect(space.assertFree()).rejects.toMatchObject({ code: 'insufficient_storage' });
});

test('a disk that has never answered refuses nothing', async () => {
  const space = new FreeSpace({ freeBytes: () => new Promise(() => {}) }, 1);
  expect(await space.read()).toBeUndefined();
  await space.assertFree();
});
