import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { LineReader } from './line-reader.ts';

/** A channel whose command prints this and ends, in one event. */
function endingWith(text: string) {
  const stdout = new Readable({ read() {} });
  setImmediate(() => {
    stdout.push(text);
    stdout.push(null);
  });
  const ended = { code: 0, signal: null };
  return {
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    closed: Promise.resolve(ended),
    destroy: () => {},
  };
}

test.each([
  ['one\ntwo\n', ['one', 'two']],
  ['one\n\ntwo', ['one', '', 'two']],
  ['', []],
])('all lines of %j are read, though they came at once and with the end', async (text, lines) => {
  const reader = new LineReader(endingWith(text), AbortSignal.timeout(5_000));
  const read: string[] = [];
  for (let line = await reader.next(); line !== undefined; line = await reader.next())
    read.push(line);
  expect(read).toEqual(lines);
});

test('what follows a line is left for the next reader', async () => {
  const channel = endingWith('hello\nbytes of\nanother');
  expect(await new LineReader(channel, AbortSignal.timeout(5_000)).next()).toBe('hello');
  const pieces: Buffer[] = [];
  for await (const piece of channel.stdout) pieces.push(piece);
  expect(String(Buffer.concat(pieces))).toBe('bytes of\nanother');
});
