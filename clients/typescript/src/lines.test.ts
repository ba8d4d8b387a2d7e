import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Chunk, type Line, toLines } from './lines.ts';

async function split(chunks: Chunk[]): Promise<Line[]> {
  const lines: Line[] = [];
  const given = async function* () {
    yield* chunks;
  };
  for await (const line of toLines(given())) lines.push(line);
  return lines;
}
const of = (stream: Chunk['stream'], bytes: Chunk['bytes']): Chunk => ({
  stream,
  offset: 0,
  bytes,
});
const utf8 = (text: string) => new TextEncoder().encode(text);

test('lines are the same, wherever the bytes are split', async () => {
  const piece = fc.constantFrom(
    'a',
    '\n',
    '\r',
    'ä',
    '😀',
    '\ufeff',
    '\0',
    '\ud800',
    'long '.repeat(9),
  );
  const text = fc.array(piece).map(pieces => pieces.join(''));
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(200)), async (given, cuts) => {
      const bytes = utf8(given);
      const at = [0, ...cuts.map(cut => Math.min(cut, bytes.length)), bytes.length];
      const sorted = at.toSorted((a, b) => a - b);
      const chunks = sorted.slice(1).map((end, n) => of('stdout', bytes.subarray(sorted[n], end)));
      const [last = '', ...ended] = new TextDecoder('utf-8', { ignoreBOM: true })
        .decode(bytes)
        .split('\n')
        .reverse();
      const lines = ended.reverse().map(line => line.replace(/\r$/, ''));
      const expected = last === '' ? lines : [...lines, last];
      expect((await split(chunks)).map(line => line.text)).toEqual(expected);
    }),
  );
});

test('streams do not mix, and a last line without an end is a line', async () => {
  const chunks = [
    of('stdout', utf8('out')),
    of('stderr', utf8('err\nrest')),
    of('stdout', utf8('put\r\n\n')),
  ];
  expect(await split(chunks)).toEqual([
    { stream: 'stderr', text: 'err' },
    { stream: 'stdout', text: 'output' },
    { stream: 'stdout', text: '' },
    { stream: 'stderr', text: 'rest' },
  ]);
});

test('a line of many pieces takes no longer than its length', async () => {
  const piece = utf8('x'.repeat(1_000));
  const chunks = Array.from({ length: 20_000 }, () => of('stdout', piece));
  const begin = performance.now();
  expect((await split(chunks))[0]?.text).toHaveLength(20_000_000);
  expect(performance.now() - begin).toBeLessThan(5_000);
});
