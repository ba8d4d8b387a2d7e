import { expect, test } from 'vitest';
import { decodeLink, encodeLink, type LinkClaims, withoutLinks } from './link-text.ts';

const [KEY, OTHER] = ['k'.repeat(32), 'o'.repeat(32)];
const PATH = '/api/jobs/01/output';
const claims: LinkClaims = {
  username: 'ada',
  version: 3,
  created: 1_700_000_000_000,
  token: '01KB4TC9E1F3G5H7J9K1M3N5P7',
  administrator: false,
  expires: 1_700_003_600,
  parameters: ['stream', 'filter'],
};
const QUERY = 'stream=stdout&filter=a&filter=b';
const link = encodeLink(KEY, claims, { path: PATH, query: QUERY });
const decode = (query: string, { keys = [KEY], text = link, path = PATH } = {}) =>
  decodeLink(keys, text, { path, query });

test('says what it was made of, under the present key and the one before', () => {
  expect(decode(QUERY)).toEqual(claims);
  expect(decode(QUERY, { keys: [OTHER, KEY] })).toEqual(claims);
  expect(decode(QUERY, { keys: [OTHER] })).toBeUndefined();
});

test('parameters may be added, in any order, and none of its own changed', () => {
  expect(decode('offset=7&filter=a&stream=stdout&filter=b')).toEqual(claims);
  for (const query of [
    '',
    'filter=a&filter=b',
    'stream=stderr&filter=a&filter=b',
    'stream=stdout&stream=stdout&filter=a&filter=b',
    'stream=stdout&filter=b&filter=a',
    'stream=stdout&filter=a',
    'stream=stdout&filter=a,b',
  ])
    expect([query, decode(query)]).toEqual([query, undefined]);
});

test('opens no other path, however alike', () => {
  for (const path of [`${PATH}/`, '/jobs/01/output', '/api/jobs/02/output', PATH.toUpperCase()])
    expect([path, decode(QUERY, { path })]).toEqual([path, undefined]);
});

test('whoever changes a character of it has nothing', () => {
  for (let at = 0; at < link.length; at++) {
    const text = `${link.slice(0, at)}${link[at] === 'A' ? 'B' : 'A'}${link.slice(at + 1)}`;
    // The last character of base64url may hold bits that mean nothing; the text must be the same even so.
    expect([at, decode(QUERY, { text })]).toEqual([at, undefined]);
  }
  for (const text of ['', 'wlk_', 'wlk_e30.', link.slice(0, -1), `${link}A`, link.slice(4)])
    expect(decode(QUERY, { text })).toBeUndefined();
});

test('a log has none of it', () => {
  expect(withoutLinks(`a?link=${link}&b`)).toBe('a?link=wlk_[redacted]&b');
});
