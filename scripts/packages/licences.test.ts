import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
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

test('what the console is built of is shipped, too', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
    .packages[''] as { dependencies: object };
  const imports = findImports(join(root, 'console/src'));
  expect(imports).toContain('preact');
  expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(imports));
});

/** Packages that the files of a folder import. */
function findImports(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(({ name }) => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
    .flatMap(({ parentPath, name }) => [
      ...readFileSync(join(parentPath, name), 'utf8').matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)/g),
    ]);
  // The client is a part of this package.
  return [...new Set(names.map(([, name = '']) => name))].filter(
    name => !/^@windlass|^node$/.test(name),
  );
}

test('any other licence, and none, is found', () => {
  const wrong = ['AGPL-3.0', 'MIT AND GPL-2.0', 'SEE LICENSE IN x', undefined];
  const packages = wrong.map(licence => ({ name: 'a', licence }));
  expect(findUnallowed(packages)).toEqual(packages);
  expect(findUnallowed([{ name: 'a', licence: 'MIT AND ISC' }])).toEqual([]);
  expect(findUnallowed([{ name: 'img/sharp-x', licence: 'LGPL-3.0' }])).toHaveLength(1);
});
