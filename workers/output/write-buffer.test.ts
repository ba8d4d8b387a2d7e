import { expect, test } from 'vitest';
import { type Part, WriteBuffer } from './write-buffer.ts';

const join = (parts: Part[], stream: string) =>
  Buffer.concat(parts.filter(part => part.stream === stream).map(part => part.bytes)).toString();

test('returns what was added, in order and by stream, in pieces of at most a MiB', () => {
  const pieces = new WriteBuffer();
  const expected = { stdout: '', stderr: '' };
  for (let n = 0; n < 400; n++) {
    const text = String(n).padStart(10_000, '.');
    const stream = n % 7 === 0 ? 'stderr' : 'stdout';
    pieces.add(stream, Buffer.from(text));
    expected[stream] += text;
  }
  expect(pieces.bytes.stdout + pieces.bytes.stderr).toBe(4_000_000);
  const { parts } = pieces.take();
  expect(join(parts, 'stdout')).toBe(expected.stdout);
  expect(join(parts, 'stderr')).toBe(expected.stderr);
  expect(Math.max(...parts.map(part => part.bytes.length))).toBeLessThanOrEqual(1 << 20);
  expect(pieces.bytes).toEqual({ stdout: 0, stderr: 0 });
});

test('reuses a block once it is released, and not before', () => {
  const pieces = new WriteBuffer();
  const fill = (letter: string) => {
    for (let n = 0; n < 300; n++) pieces.add('stdout', Buffer.alloc(10_000, letter));
    return pieces.take();
  };
  const first = fill('a');
  const second = fill('b');
  expect(join(first.parts, 'stdout')).toBe('a'.repeat(3_000_000));
  first.release();
  const third = fill('c');
  expect(join(second.parts, 'stdout')).toBe('b'.repeat(3_000_000));
  expect(join(third.parts, 'stdout')).toBe('c'.repeat(3_000_000));
});
