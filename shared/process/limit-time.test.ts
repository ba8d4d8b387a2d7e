import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { abortable } from './abort.ts';
import { limitTime } from './limit-time.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const forever = (signal: AbortSignal) => abortable(new Promise<never>(() => {}), signal);

test('a limit of time holds after the garbage collector ran', { timeout: 20_000 }, async () => {
  const limited = limitTime(new AbortController().signal, 500, forever);
  const ended = limited.catch((error: Error) => error.name);
  for (let i = 0; i < 5; i++) {
    await setImmediate();
    collectGarbage();
  }
  expect(await ended).toBe('TimeoutError');
});

test('work ends with the signal that it is given, for its reason', async () => {
  const outer = new AbortController();
  const limited = limitTime(outer.signal, 60_000, forever);
  outer.abort(new Error('stopped'));
  await expect(limited).rejects.toThrow('stopped');
});
