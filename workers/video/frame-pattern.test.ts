import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { expandPattern, type Pattern, patternScript } from './frame-pattern.ts';
import { readNames } from './list-frames.ts';

const temp = makeTempDir('frame-pattern');
afterAll(() => temp.remove());

/** A folder with these empty files. */
function makeFolder(name: string, files: string[]): string {
  const folder = join(temp.path, name);
  mkdirSync(folder, { recursive: true });
  for (const file of files) writeFileSync(join(folder, file), '');
  return folder;
}

/** What it matches, as on a host. */
async function expand(pattern: Pattern) {
  const { stdout } = spawnSync('/bin/sh', { input: patternScript(pattern) });
  return expandPattern(pattern, await readNames(Readable.from([stdout], { objectMode: false })));
}

test('frames beyond a gap are counted, unless a last number is given', async () => {
  const names = [1, 2, 3, 5, 6, 8, 9].map(n => `f${n}.png`);
  const folder = makeFolder('gap', names);
  const pattern = join(folder, 'f%d.png');
  const path = (n: number) => join(folder, `f${n}.png`);
  expect(await expand({ pattern })).toEqual({
    frames: [1, 2, 3].map(path),
    gap: { path: path(4), after: 4 },
  });
  expect(await expand({ pattern, step: 2, first: 2 })).toEqual({
    frames: [path(2)],
    gap: { path: path(4), after: 2 },
  });
  expect(await expand({ pattern, last: 3 })).toEqual({ frames: [1, 2, 3].map(path) });
  expect(await expand({ pattern, first: 8 })).toEqual({ frames: [8, 9].map(path) });
});

test('a link to nowhere is a frame, which is missing', async () => {
  const folder = makeFolder('links', ['a1.png', 'a3.png']);
  symlinkSync('/nowhere', join(folder, 'a2.png'));
  const frames = [1, 2, 3].map(n => join(folder, `a${n}.png`));
  expect(await expand({ pattern: join(folder, 'a*.png') })).toEqual({ frames });
  expect(await expand({ pattern: join(folder, 'a%d.png') })).toEqual({ frames });
});

test('the signs of a folder mean nothing where the name of the file has its own', async () => {
  const folder = makeFolder('50%damping', ['f1.png', 'f2.png']);
  const frames = [1, 2].map(n => join(folder, `f${n}.png`));
  for (const name of ['f%d.png', 'f*.png'])
    expect(await expand({ pattern: join(folder, name) })).toEqual({ frames });
  makeFolder('runs/7', ['end.png']);
  for (const pattern of ['runs/%d/end.png', 'runs/*/end.png'])
    expect(await expand({ pattern: join(temp.path, pattern) })).toEqual({
      frames: [join(temp.path, 'runs/7/end.png')],
    });
});

test.each([
  ['f%d.png', { last: 99_999 }],
  ['f*.png', {}],
])('paths of %s that have too many bytes together are refused', (name, range) => {
  const folder = `/${'d'.repeat(3_900)}`;
  const pattern = `${folder}/${name}`;
  const names = Array.from({ length: 10_000 }, (_, n) => `${folder}/f${n}.png`);
  const expandAll = () => expandPattern({ pattern, ...range }, names);
  expect(expandAll).toThrow('have more than 33554432 bytes together');
  const half = expandPattern({ pattern, first: 0, last: 4_999 }, names);
  expect(half.frames).toHaveLength(5_000);
});
