import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSha256, OwnSha256, toHex } from './sha256.ts';

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

test('the digest of bytes of any length, however they come', () => {
  for (let length = 0; length < 260; length++) {
    const bytes = randomBytes(length);
    const whole = new OwnSha256();
    whole.update(bytes);
    expect(toHex(whole.digest())).toBe(digestOf(bytes));
  }
  const bytes = randomBytes(1_000_000);
  const hash = new OwnSha256();
  for (let at = 0, length = 0; at < bytes.length; at += length++)
    hash.update(bytes.subarray(at, at + length));
  expect(toHex(hash.digest())).toBe(digestOf(bytes));
});

test("Node's own is taken there", () => {
  const hash = createSha256();
  expect(hash).not.toBeInstanceOf(OwnSha256);
  hash.update(Buffer.from('abc'));
  expect(toHex(hash.digest())).toBe(digestOf(Buffer.from('abc')));
});
