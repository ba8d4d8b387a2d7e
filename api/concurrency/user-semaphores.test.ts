import { expect, test } from 'vitest';
import { UserSemaphores } from './user-semaphores.ts';

test('limits the tasks of each user independently', async () => {
  const semaphores = new UserSemaphores(2);
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const start = (user: string, name: string) =>
    semaphores.run(user, () => {
      began.push(name);
      return new Promise<void>(resolve => ends.push(resolve));
    });
  const all = [start('a', 'a1'), start('a', 'a2'), start('a', 'a3'), start('b', 'b1')];
  expect(began).toEqual(['a1', 'a2', 'b1']);
  ends[0]?.();
  await all[0];
  expect(began).toEqual(['a1', 'a2', 'b1', 'a3']);
  for (const end of ends) end();
  await Promise.all(all);
  // All of them were given back.
  const again = [start('a', 'a4'), start('a', 'a5')];
  expect(began.slice(-2)).toEqual(['a4', 'a5']);
  for (const end of ends) end();
  await Promise.all(again);
});
