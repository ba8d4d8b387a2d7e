import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
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
  // The pipe and a MiB of memory take only a part of the 4 MB.
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

/** Writes long lines to standard output, and short ones to standard error, as the log does. */
const PROGRAM = `
import { writeSync } from 'node:fs';
const { LineWriter } = await import(process.argv[1]);
const writer = new LineWriter(1);
for (let n = 0; n < 60; n++) {
  writer.write('event ' + n + ' ' + 'x'.repeat(n % 2 ? 8_000 : 800) + '\\n');
  writeSync(2, 'log ' + n + '\\n');
}
await writer.end(10_000);
`;

test('lines of the log are not written into a long line that shares their pipe', async () => {
  const pipe = join(makeTempDir('line-writer').path, 'pipe');
  spawnSync('mkfifo', [pipe]);
  const held = openSync(pipe, 'r+');
  const module = new URL('../../dist/shared/process/line-writer.js', import.meta.url).href;
  const writing = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, module], {
    stdio: ['ignore', held, held],
  });
  const ended = once(writing, 'exit');
  // Byte by byte: the pipe is full.
  const script = 'while read -r line; do echo "$line"; done <"$0"';
  const reader = spawn('sh', ['-c', script, pipe], { stdio: ['ignore', 'pipe', 'inherit'] });
  const read = text(reader.stdout);
  await ended;
  closeSync(held);
  const lines = (await read).trim().split('\n');
  for (const line of lines) expect(line).toMatch(/^(log \d+|event \d+ x+)$/);
  expect(lines).toHaveLength(120);
});

test('at the end what waits for a reader is counted', async () => {
  const pipe = join(makeTempDir('line-writer').path, 'pipe');
  spawnSync('mkfifo', [pipe]);
  const held = openSync(pipe, 'r+');
  const writer = new LineWriter(held);
  for (let n = 0; n < 20; n++) expect(writer.write('x'.repeat(8_000))).toBe(true);
  // The pipe holds eight lines, and a part of one.
  expect(await writer.end(0)).toBe(12);
  readSync(held, Buffer.alloc(32 << 10));
  readSync(held, Buffer.alloc(32 << 10));
  expect(await writer.end(0)).toBe(4);
  closeSync(held);
});

test('what a full disk does not take is lost, and told of', () => {
  const fd = openSync('/dev/full', 'w');
  const writer = new LineWriter(fd);
  for (let n = 0; n < 300; n++) expect(writer.write('x'.repeat(8_000))).toBe(false);
  closeSync(fd);
});
