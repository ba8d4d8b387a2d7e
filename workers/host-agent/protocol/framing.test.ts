import { expect, test } from 'vitest';
import { quoteLine } from '../shell-quote.ts';
import { FrameParser } from './framing.ts';

const bytes = Buffer.from(
  'running 1\ndata 1 o 0 5\nab\ncddata 12 e 7 0\ndata 1 e 9 3\n\0\xff\nitem ü x\n',
  'utf8',
);

function parse(chunks: Buffer[]) {
  const seen: string[] = [];
  const parser = new FrameParser({
    onLine: line => seen.push(line),
    onData: ({ run, stream, offset, bytes }) => {
      for (const [i, byte] of bytes.entries()) seen.push(`${run} ${stream} ${offset + i} ${byte}`);
    },
  });
  for (const chunk of chunks) parser.push(chunk);
  return seen;
}

test('frames are the same however the bytes are split into chunks', () => {
  const whole = parse([bytes]);
  expect(whole[0]).toBe('running 1');
  expect(whole.at(-1)).toBe('item ü x');
  expect(whole.filter(line => /^1 std/.test(line)).length).toBe(8);
  for (let cut = 1; cut < bytes.length; cut++) {
    expect(parse([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole);
  }
});

test('a body is a view of the received chunk', () => {
  const chunk = Buffer.from('data 3 o 0 4\nbody');
  let piece: Buffer | undefined;
  const parser = new FrameParser({
    onLine: () => {},
    onData: ({ bytes }) => {
      piece = bytes;
    },
  });
  parser.push(chunk);
  expect(piece?.buffer).toBe(chunk.buffer);
});

test('an endless line is refused', () => {
  expect(() => parse([Buffer.alloc(100_000, 'x')])).toThrow('without end');
});

test('a command becomes one line, without NUL', () => {
  expect(quoteLine("it's\nfine")).toBe(`'it'\\''s'"$nl"'fine'`);
  expect(() => quoteLine('a\0b')).toThrow('NUL');
});
