import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { readPart } from './read-part.ts';
import { TableError } from './table/protocol.ts';

const BYTES = Buffer.from('0123456789');
const PART = {
  part: 3,
  object: 'uploads/u/p',
  size: BYTES.length,
  digest: createHash('sha256').update(BYTES).digest('base64'),
};

/** Reads the part from a store that sends these bytes, and has an object of such a size. */
async function read(sent: Buffer, kept = BYTES.length): Promise<string> {
  const objects = {
    get: async () => Readable.from([sent.subarray(0, 4), sent.subarray(4)]),
    stat: async (key: string) => ({ key, size: kept, modified: new Date() }),
  };
  let text = '';
  const signal = new AbortController().signal;
  for await (const piece of readPart(objects as unknown as ObjectStore, PART, signal))
    text += piece.toString();
  return text;
}

test('a part that the store sends as it arrived is passed on', async () => {
  expect(await read(BYTES)).toBe('0123456789');
});

test('a part that ends early in its transfer is an outage, and one that the store has cut is damage', async () => {
  const short = BYTES.subarray(0, 7);
  await expect(read(short)).rejects.toMatchObject({ code: 'unavailable' });
  const cut = read(short, short.length);
  await expect(cut).rejects.toBeInstanceOf(TableError);
  await expect(cut).rejects.toThrow('part 3 has other bytes in the object store (7 in all)');
});

test('no byte beyond the size is passed on, and other bytes are damage', async () => {
  const longer = read(Buffer.concat([BYTES, BYTES]), 20);
  await expect(longer).rejects.toThrow('(20 in all) than arrived (10)');
  await expect(read(Buffer.from('0123456788'))).rejects.toBeInstanceOf(TableError);
});
