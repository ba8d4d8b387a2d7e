import { expect, test } from 'vitest';
import { decodeAhead } from './decode-ahead.ts';

interface Decoding {
  name: string;
  decoding?: Promise<unknown>;
}

/** Frames that are told when they are read; those with a capital letter are decoded until finish() is called. */
function makeFrames(names: string) {
  const read: string[] = [];
  const finish = new Map<string, () => void>();
  let isClosed = false;
  async function* frames() {
    try {
      for (const name of names) {
        read.push(name);
        yield name;
      }
    } finally {
      isClosed = true;
    }
  }
  const begin = (name: string): Decoding => {
    if (name === name.toLowerCase()) return { name };
    return { name, decoding: new Promise<void>(resolve => finish.set(name, resolve)) };
  };
  return { frames: frames(), begin, read, finish, isClosed: () => isClosed };
}

test('as many as are asked for are decoded at once, and come in their order', async () => {
  const { frames, begin, read, finish } = makeFrames('ABCDE');
  const begun = decodeAhead(frames, begin, () => 3);
  const first = begun.next();
  await expect.poll(() => read.join('')).toBe('ABC');
  finish.get('C')?.();
  finish.get('B')?.();
  finish.get('A')?.();
  expect((await first).value?.name).toBe('A');
  // B and C are there; only what is asked for next lets another one be read.
  expect(read.join('')).toBe('ABC');
  expect((await begun.next()).value?.name).toBe('B');
  expect(read.join('')).toBe('ABCD');
  expect((await begun.next()).value?.name).toBe('C');
  finish.get('D')?.();
  finish.get('E')?.();
  expect((await begun.next()).value?.name).toBe('D');
  expect((await begun.next()).value?.name).toBe('E');
  expect((await begun.next()).done).toBe(true);
});

test('what is not decoded is in memory alone', async () => {
  const { frames, begin, read, finish } = makeFrames('abCd');
  const begun = decodeAhead(frames, begin, () => 3);
  expect((await begun.next()).value?.name).toBe('a');
  expect(read.join('')).toBe('a');
  expect((await begun.next()).value?.name).toBe('b');
  const third = begun.next();
  await expect.poll(() => read.join('')).toBe('abCd');
  finish.get('C')?.();
  expect((await third).value?.name).toBe('C');
  expect((await begun.next()).value?.name).toBe('d');
});

test('frames are closed by whoever leaves, and by a failure to read them', async () => {
  const { frames, begin, isClosed } = makeFrames('abc');
  for await (const { name } of decodeAhead(frames, begin, () => 2)) if (name === 'a') break;
  expect(isClosed()).toBe(true);
  async function* failing() {
    yield 'a';
    throw new Error('the link is lost');
  }
  const begun = decodeAhead(failing(), begin, () => 2);
  await begun.next();
  await expect(begun.next()).rejects.toThrow('the link is lost');
});
