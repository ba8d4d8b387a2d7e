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
  const picture = { width: 10, height: 10, bytes: Buffer.alloc(300, 1) };
  expect(await readAnswer(readFrom(...writeAnswer(picture)), 100)).toEqual(picture);
  const [header = Buffer.alloc(0)] = writeAnswer(picture);
  for (const [length, kind] of [
    [66_000, 0],
    [66_000, 1],
    [2 ** 31, 1],
  ] as const) {
    header.writeUInt8(kind, 0);
    header.writeUInt32BE(length, 9);
    await expect(readAnswer(readFrom(header), 100)).rejects.toThrow('too long');
  }
});
