import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';
import { describeUnless, missingRoot } from '../test/harness/skip.ts';
import { writeAtomically } from './write-atomically.ts';

const directory = makeTempDir('write-atomically');
afterAll(() => directory.remove());

test('replaces a file with one that its user alone can read', async () => {
  const path = join(directory.path, 'own');
  writeFileSync(path, 'before', { mode: 0o644 });
  await writeAtomically(path, 'after');
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['after\n', 0o600]);
});

describeUnless(missingRoot(), 'root', () => {
  test('leaves a file to the user whose it was, such as the keys of a service', async () => {
    const path = join(directory.path, 'of-a-service');
    writeFileSync(path, 'before');
    chownSync(path, 12_345, 12_346);
    await writeAtomically(path, 'after');
    const { uid, gid, mode } = statSync(path);
    expect([uid, gid, mode & 0o777]).toEqual([12_345, 12_346, 0o600]);
  });
});
