import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { readContentDigest } from './content-digest.ts';

const digest = createHash('sha256').update('windlass').digest();
const field = `sha-256=:${digest.toString('base64')}:`;

test('reads sha-256 anywhere in the list and ignores other algorithms', () => {
  expect(readContentDigest(undefined)).toBeUndefined();
  expect(readContentDigest(field)).toEqual(digest);
  expect(readContentDigest(`sha-512=:AAAA:, ${field} , md5=::`)).toEqual(digest);
  expect(readContentDigest(`sha-256=:${'A'.repeat(43)}=:,${field}`)).toEqual(digest);
  expect(readContentDigest('sha-512=:AAAA:')).toBeUndefined();
});

test.each([
  '',
  'sha-256',
  'sha-256=abc',
  'sha-256="abc"',
  'sha-256=:AAAA:',
  `${field},`,
  'SHA-256=:AAAA:',
])('%j is malformed', header => {
  expect(() => readContentDigest(header)).toThrow(/Content-Digest/);
});
