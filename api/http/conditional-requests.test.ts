import { expect, test } from 'vitest';
import { entityTag, matchesEntityTag } from './conditional-requests.ts';

test('an entity tag is quoted and depends on the record', () => {
  expect(entityTag(7)).toBe('"7"');
  expect(entityTag({ a: 1 })).toMatch(/^"[\w-]{22}"$/);
  expect(entityTag({ a: 1 })).toBe(entityTag({ a: 1 }));
  expect(entityTag({ a: 1 })).not.toBe(entityTag({ a: 2 }));
});

test('a list of tags is matched by weak comparison', () => {
  for (const header of ['"a"', ' "a" ', 'W/"a"', '"b", "a"', 'W/"b",W/"a"', '*'])
    expect([header, matchesEntityTag(header, '"a"')]).toEqual([header, true]);
  // As Apache, nginx's Brotli and Jetty name what they have compressed.
  for (const header of ['"a-gzip"', 'W/"a-br"', '"b", "a--gzip"', '"a-zstd"'])
    expect([header, matchesEntityTag(header, '"a"')]).toEqual([header, true]);
  expect(matchesEntityTag('"a-gzip"', '"a-gzip"')).toBe(true);
  for (const header of [undefined, '', '"b"', 'a', '"ab"', 'w/"a"', '"b-gzip"', '"a-gzip', '"a-1"'])
    expect([header, matchesEntityTag(header, '"a"')]).toEqual([header, false]);
});
