import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { isUnloadable, saysUnloadable } from './unloadable-program.ts';

const directory = makeTempDir('unloadable');
afterAll(() => directory.remove());

function end(text: string): string {
  const path = join(directory.path, 'program.mjs');
  writeFileSync(path, text);
  return spawnSync(process.execPath, [path], { encoding: 'utf8' }).stderr;
}

test('what Node prints for a module that is not there is told from other errors', () => {
  writeFileSync(join(directory.path, 'broken.node'), 'not a library');
  const require = "import { createRequire } from 'node:module';\ncreateRequire(import.meta.url)";
  for (const text of [
    "import 'no-such-package';",
    "import './no-such-file.js';",
    `${require}('no-such-package');`,
    `${require}('./broken.node');`,
  ])
    expect([text, saysUnloadable(end(text))]).toEqual([text, true]);
  for (const text of ["throw new Error('MODULE_NOT_FOUND');", 'null.x;', 'import {'])
    expect([text, saysUnloadable(end(text))]).toEqual([text, false]);
  expect(
    saysUnloadable(spawnSync(process.execPath, ['/no-such-file'], { encoding: 'utf8' }).stderr),
  ).toBe(true);
});

test('a failed import is told from other errors', async () => {
  const path = './no-such-file.ts';
  expect(isUnloadable(await import(path).catch((error: unknown) => error))).toBe(true);
  expect(isUnloadable(new Error('MODULE_NOT_FOUND'))).toBe(false);
});
