import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { LineWriter } from './line-writer.ts';

test('a pipe that nobody reads holds up nothing, and its lines come when it is read', async () => {
  const pipe = join(makeTempDir('line-writer').path, 'pipe');
  spawnSync('mkfifo', [pipe]);
  const reading = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const writing = openSync(pipe, 'w');
  const writer = new LineWriter(writing);
  const line = (n: number) => `${n} ${'x'.repeat(8_000)}\n`;
  const taken = Array.from({ length: 500 }, (_, n) => writer.write(line(n)));
  // Of 4 MB those that the pipe and a MiB hold.
  const count = taken.indexOf(false);
  expect(count).toBeGreaterThan(130);
  expect(taken.slice(count)).toEqual(taken.slice(count).map(() => false));
  let text = '';
  const buffer = Buffer.alloc(1 << 20);
  const read = () => {
    try {
      text += buffer.toString('utf8', 0, readSync(reading, buffer));
    } catch (error) {
      expect(error).toMatchObject({ code: 'EAGAIN' });
    }
    return text.split('\n').length > count;
  };
  await waitFor(read, { what: 'the lines that were taken' });
  expect(text).toBe(Array.from({ length: count }, (_, n) => line(n)).join(''));
  expect(writer.write('next\n')).toBe(true);
  closeSync(reading);
  closeSync(writing);
});

test('what a full disk does not take is lost, and told of', () => {
  const fd = openSync('/dev/full', 'w');
  const writer = new LineWriter(fd);
  for (let n = 0; n < 300; n++) expect(writer.write('x'.repeat(8_000))).toBe(false);
  closeSync(fd);
});
