import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { findUnallowed, listShipped } from './licences.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('what is shipped may be passed on', () => {
  const shipped = listShipped(root);
  expect(shipped.map(({ name }) => name)).toEqual(expect.arrayContaining(['express', 'ssh2']));
  expect(shipped.map(({ name }) => name)).not.toContain('vitest');
  expect(findUnallowed(shipped)).toEqual([]);
});

test('any other licence, and none, is found', () => {
  const wrong = ['AGPL-3.0', 'MIT AND GPL-2.0', 'SEE LICENSE IN x', undefined];
  const packages = wrong.map(licence => ({ name: 'a', licence }));
  expect(findUnallowed(packages)).toEqual(packages);
  expect(findUnallowed([{ name: 'a', licence: 'MIT AND ISC' }])).toEqual([]);
  expect(findUnallowed([{ name: 'img/sharp-x', licence: 'LGPL-3.0' }])).toHaveLength(1);
});
