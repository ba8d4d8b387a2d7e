import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readAnswer } from './read-answer.ts';

function* repeat(bytes: Buffer, times: number): Generator<Buffer> {
  for (let n = 0; n < times; n++) yield bytes;
}

test('an answer of more than any table needs is not read to its end', async () => {
  const piece = Buffer.from('[],'.repeat(1 << 18));
  const lists = Readable.from(repeat(piece, 100), { objectMode: false });
  const read = readAnswer(lists, () => {});
  await expect(read).rejects.toMatchObject({
    code: 'parse_failed',
    hint: 'Put fewer tables or columns into a file.',
  });
});

test('an answer of the most that a table needs is read', async () => {
  const columns = Array.from({ length: 2_500 }, () => ({ name: 'x'.repeat(10_800) }));
  const shares: number[] = [];
  const lines = [{ progress: 0.5 }, { made: columns }].map(line => `${JSON.stringify(line)}\n`);
  const read = readAnswer(
    Readable.from(
      lines.map(line => Buffer.from(line)),
      { objectMode: false },
    ),
    share => shares.push(share),
  );
  expect(await read).toEqual({ made: columns });
  expect(shares).toEqual([0.5]);
});

test('an answer that the end of the child has cut is none', async () => {
  const cut = Readable.from([Buffer.from('{"made":[{"na')], { objectMode: false });
  expect(await readAnswer(cut, () => {})).toBeUndefined();
});
