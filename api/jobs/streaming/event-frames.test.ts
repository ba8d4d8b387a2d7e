import { expect, test } from 'vitest';
import { cutAtCharacter } from './event-frames.ts';

test('a UTF-8 character is never cut, wherever the bytes end', () => {
  const text = Buffer.from('aä€😀z');
  const boundaries = new Set([0, 1, 3, 6, 10, 11]);
  for (let end = 0; end <= text.length; end++) {
    const part = cutAtCharacter(text.subarray(0, end));
    expect(boundaries.has(part.length)).toBe(true);
    expect(part.toString()).toBe('aä€😀z'.slice(0, part.toString().length));
    // Nothing is held back but an unfinished character.
    expect(end - part.length).toBeLessThan(4);
    if (boundaries.has(end)) expect(part).toHaveLength(end);
  }
});

test('what is not UTF-8 at the end is sent as it is', () => {
  const cases: [number[], number][] = [
    [[0x61, 0x80], 2],
    [[0x80, 0x80, 0x80, 0x80], 4],
    [[0xff], 1],
    [[0xc0], 1],
    [[0x61, 0xf5, 0x80], 3],
    [[0xff, 0xff, 0xff, 0x61], 4],
    [[0xc3], 0],
    [[0xe2, 0x82], 0],
    [[0x61, 0xf0, 0x9f, 0x98], 1],
    [[0xc3, 0xa4, 0xa4], 3],
  ];
  for (const [bytes, length] of cases)
    expect([bytes, cutAtCharacter(Buffer.from(bytes)).length]).toEqual([bytes, length]);
});
