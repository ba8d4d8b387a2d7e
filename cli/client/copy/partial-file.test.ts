import {
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { makeTempDir } from '../../../test/harness/files/temp-dir.ts';
import { missingRoot, skipTest } from '../../../test/harness/skip.ts';
import { PartialFiles } from './partial-file.ts';

const directory = makeTempDir('partial-file');
afterAll(() => directory.remove());

const folder = join(directory.path, 'shared');
const notes = join(directory.path, 'notes');
const partials = new PartialFiles(folder, ['what']);
/** As of an earlier process with this one's number. */
const left = partials.pathFor('ab');
const claim = async () => {
  const claimed = await partials.claim();
  await claimed?.file.close();
  return claimed;
};

beforeEach(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(notes, 'notes');
});

test('what a dead process received is claimed', async () => {
  writeFileSync(left, 'some bytes');
  expect(await claim()).toMatchObject({ path: left, tag: 'ab', size: 10 });
});

test.each([
  ['a link', () => symlinkSync(notes, left)],
  ['another name of a file', () => linkSync(notes, left)],
  ['a folder', () => mkdirSync(left)],
])('%s with its name is passed over', async (_, plant) => {
  plant();
  const before = lstatSync(left);
  expect(await claim()).toBeUndefined();
  expect(lstatSync(left).ino).toBe(before.ino);
});

test('of two that can be claimed one stays, and what nobody can continue goes', async () => {
  writeFileSync(left, 'some bytes');
  writeFileSync(partials.pathFor('cd'), 'other bytes');
  writeFileSync(partials.pathFor(), 'no tag');
  writeFileSync(join(folder, 'other'), 'other');
  const claimed = await claim();
  expect(readdirSync(folder).map(name => join(folder, name))).toEqual(
    expect.arrayContaining([claimed?.path, join(folder, 'other')]),
  );
  expect(readdirSync(folder)).toHaveLength(2);
});

test('one of another account is left alone, whether it could be continued or not', async context => {
  const skip = missingRoot();
  if (skip) skipTest(context, skip);
  for (const path of [left, partials.pathFor()]) {
    writeFileSync(path, 'of another');
    chownSync(path, 65_534, 65_534);
  }
  expect(await claim()).toBeUndefined();
  expect([left, partials.pathFor()].map(path => existsSync(path))).toEqual([true, true]);
});

test('of accounts that copy the same file to one place each has names of its own', () => {
  const uid = process.geteuid?.() ?? 0;
  const geteuid = Object.getOwnPropertyDescriptor(process, 'geteuid') ?? {};
  try {
    Object.defineProperty(process, 'geteuid', { ...geteuid, value: () => uid + 1 });
    expect(new PartialFiles(folder, ['what']).pathFor('ab')).not.toBe(left);
  } finally {
    Object.defineProperty(process, 'geteuid', geteuid);
  }
});

test('an empty one makes room for a new one', async () => {
  writeFileSync(left, '');
  expect(await claim()).toBeUndefined();
  expect(existsSync(left)).toBe(false);
});
