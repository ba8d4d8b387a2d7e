import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { readAll } from './read-all.ts';

test('gives all pieces in order, and holds the source back while they are not taken', async () => {
  const source = new PassThrough({ highWaterMark: 1 });
  const taken: string[] = [];
  const held: (() => void)[] = [];
  const read = readAll(source, bytes => {
    taken.push(String(bytes));
    return new Promise(resolve => held.push(resolve));
  });
  const all = Array.from({ length: 100 }, (_, n) => `${n} `);
  const written = (async () => {
    for (const piece of all)
      if (!source.write(piece)) await new Promise(r => source.once('drain', r));
    source.end();
  })();
  // As long as none is taken the writer cannot have ended.
  while (!source.isPaused()) await new Promise(setImmediate);
  expect(taken.length).toBeLessThan(100);
  const release = setInterval(() => {
    for (const resume of held.splice(0)) resume();
  });
  await Promise.all([read, written]);
  clearInterval(release);
  expect(taken.join('')).toBe(all.join(''));
});

test('rejects with what the taker rejects with, and ends the source', async () => {
  const source = new PassThrough();
  const read = readAll(source, async () => {
    throw new Error('no room');
  });
  source.write('x');
  await expect(read).rejects.toThrow('no room');
  expect(source.destroyed).toBe(true);
});

test('a source that closes before its end is told apart from one that ends', async () => {
  const source = new PassThrough();
  const read = readAll(source, async () => {});
  source.write('x');
  source.destroy();
  await expect(read).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' });
});
