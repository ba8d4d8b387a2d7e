import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { FileStore } from '../../shared/storage/file-store.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { findIsolation } from './confine.ts';
import { giveToDecoder, storeScratch, withScratch, writeScratch } from './scratch-dir.ts';

/** Above the greatest id that Linux gives. */
const DEAD = 2 ** 22 + 1;
const { user } = await findIsolation();

/** As a worker left it that died; everybody may make a directory of such a name. */
function makeOrphan(): string {
  const path = mkdtempSync(join(tmpdir(), `windlass-parse-${DEAD}-`));
  mkdirSync(join(path, 'parts'));
  writeFileSync(join(path, 'parts', 'part'), 'bytes');
  return path;
}

const useScratch = () => withScratch('parse', async path => path);

test('a directory is removed after use, and one of a worker that died before', async () => {
  const orphan = makeOrphan();
  for (const path of ['', 'parts', 'parts/part']) await giveToDecoder(join(orphan, path));
  expect(existsSync(await useScratch())).toBe(false);
  expect(existsSync(orphan)).toBe(false);
});

test('nobody puts another directory in its place', async context => {
  if (!user) return context.skip('needs root, and another user for confined programs');
  await withScratch('parse', async path => {
    const move = () => execFileSync('mv', [path, `${path}-moved`], { ...user, stdio: 'ignore' });
    expect(move).toThrow();
    expect(existsSync(path)).toBe(true);
  });
});

test('a link that takes the place of a file while it is written leads root to nothing', async context => {
  if (!user) return context.skip('needs root, and another user for confined programs');
  const mine = mkdtempSync(join(tmpdir(), 'scratch-dir-'));
  const secret = join(mine, 'secret');
  writeFileSync(secret, 'of root');
  try {
    await withScratch('parse', async scratch => {
      const path = join(scratch, 'upload');
      const bytes = Readable.from(
        (async function* () {
          yield 'first';
          await waitFor(() => existsSync(path), { what: 'the file' });
          renameSync(path, `${path}-moved`);
          symlinkSync(secret, path);
          yield 'second';
        })(),
      );
      await writeScratch(path, bytes, { signal: new AbortController().signal, keepFree: 0 });
      expect([statSync(secret).uid, statSync(`${path}-moved`).uid]).toEqual([0, user.uid]);
    });
  } finally {
    rmSync(mine, { recursive: true });
  }
});

test('what a program names outside its directory is not stored, nor what is behind a link', async () => {
  const mine = mkdtempSync(join(tmpdir(), 'scratch-dir-'));
  writeFileSync(join(mine, 'secret'), 'mine');
  const objects = new FileStore(join(mine, 'objects'));
  const store = (path: string, within: string) =>
    storeScratch(objects, 'artifacts/a/b', { path, within, signal: new AbortController().signal });
  try {
    await withScratch('parse', async scratch => {
      symlinkSync(mine, join(scratch, 'link'));
      for (const path of [join(mine, 'secret'), `${scratch}/../secret`, `${scratch}/link/secret`])
        await expect(store(path, scratch)).rejects.toThrow();
      writeFileSync(join(scratch, 'table'), 'made');
      expect(await store(join(scratch, 'table'), scratch)).toBe(4);
    });
  } finally {
    rmSync(mine, { recursive: true });
  }
});

test('root removes there only what the confined programs could remove', async context => {
  if (!user) return context.skip('needs root, and another user for confined programs');
  const foreign = makeOrphan();
  for (const path of ['', 'parts', 'parts/part']) chownSync(join(foreign, path), 12_345, 12_345);
  try {
    await useScratch();
    expect(existsSync(join(foreign, 'parts/part'))).toBe(true);
  } finally {
    rmSync(foreign, { recursive: true });
  }
});
