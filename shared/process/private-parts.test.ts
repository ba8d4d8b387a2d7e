import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { privateParts } from './private-parts.ts';

const missing = (name: string) =>
  `a thing has no ${name}, on which Windlass relies: install the version in package.json`;

test('a private part that is missing throws with its name', () => {
  const object = { has: 0 };
  expect(privateParts<{ has: number }>('a thing', object, ['has'])).toBe(object);
  const both = () =>
    privateParts<{ has: number; lacks: number }>('a thing', object, ['has', 'lacks']);
  expect(both).toThrow(missing('lacks'));
  expect(() => privateParts<{ any: 1 }>('a thing', undefined, ['any'])).toThrow(missing('any'));
});

test('the packages whose private parts are used are pinned exactly', () => {
  const { dependencies } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { dependencies: Record<string, string> };
  for (const name of ['postgres', 'ssh2'])
    expect(dependencies[name], name).toMatch(/^\d+\.\d+\.\d+$/);
});
