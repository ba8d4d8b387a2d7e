import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { makeExecutable } from './bundled-ffmpeg.ts';

const directory = makeTempDir('bundled');
afterAll(() => directory.remove());

test.each([0o644, 0o744])('a program of mode %o can be run by every user', async mode => {
  const path = join(directory.path, 'ffmpeg');
  writeFileSync(path, '');
  chmodSync(path, mode);
  await makeExecutable(path);
  expect(statSync(path).mode & 0o777).toBe(0o755);
});
