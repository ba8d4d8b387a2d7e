import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findIsolation } from './confine.ts';
import { giveToDecoder, withScratch } from './scratch-dir.ts';

/** Above the greatest id that Linux gives. */
const DEAD = 2 ** 22 + 1;
const { user } = await findIsolation();

/** As a worker left it that died; everybody may make a folder of such a name. */
function makeOrphan(): string {
  const path = mkdtempSync(join(tmpdir(), `windlass-parse-${DEAD}-`));
  mkdirSync(join(path, 'parts'));
  writeFileSync(join(path, 'parts', 'part'), 'bytes');
  return path;
}

const useScratch = () => withScratch('parse', async path => path);

test('a folder is removed after use, and one of a worker that died before', async () => {
  const orphan = makeOrphan();
  for (const path of ['', 'parts', 'parts/part']) await giveToDecoder(join(orphan, path));
  expect(existsSync(await useScratch())).toBe(false);
  expect(existsSync(orphan)).toBe(false);
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
