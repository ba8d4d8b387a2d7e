import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { readAnswer, writeAnswer } from './decode-protocol.ts';

/** A decoder that has sent this, and sends no more for now. */
function readFrom(...sent: Buffer[]): ByteReader {
  const stream = new PassThrough();
  for (const bytes of sent) stream.write(bytes);
  return new ByteReader(stream);
}

test('an answer that is longer than the picture may be is refused before memory is taken for it', async () => {
  const request = { format: 'raw', pixels: 100 } as const;
  const picture = { width: 10, height: 10, bytes: Buffer.alloc(300, 1) };
  expect(await readAnswer(readFrom(...writeAnswer(picture)), request)).toEqual(picture);
  const long = { problem: 'x'.repeat(10_000) };
  expect(await readAnswer(readFrom(...writeAnswer(long)), request)).toEqual({
    problem: 'x'.repeat(4_096),
  });
  const [header = Buffer.alloc(0)] = writeAnswer(picture);
  for (const [length, kind, format, pixels] of [
    [66_000, 1, 'raw', 100],
    [2 ** 31, 1, 'raw', 100],
    [100_000, 0, 'raw', 2 ** 26],
    [1, 1, 'none', 2 ** 26],
  ] as const) {
    header.writeUInt8(kind, 0);
    header.writeUInt32BE(length, 9);
    await expect(readAnswer(readFrom(header), { format, pixels })).rejects.toThrow('too long');
  }
});
