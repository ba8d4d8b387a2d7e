import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { NEEDS_MOUNT } from '../../test/harness/small-disk.ts';
import { makeTempDir } from '../../test/harness/temp-dir.ts';
import { AMPLE } from '../../test/harness/video-limits.ts';
import { runConfined } from './run-confined.ts';

const MIB = 1 << 20;

const disk = makeTempDir('confined-disk');
const mount = ['-t', 'tmpfs', '-o', 'size=20m,mode=777', 'tmpfs', disk.path];
const mounted = !missingRoot() && spawnSync('mount', mount).status === 0;
const before = process.env.TMPDIR;
afterAll(() => {
  process.env.TMPDIR = before;
  if (before === undefined) delete process.env.TMPDIR;
  if (mounted) execFileSync('umount', ['--lazy', disk.path]);
  disk.remove();
});
const skip = mounted ? undefined : { reason: NEEDS_MOUNT, obtainable: false };

describeUnless(skip, 'a confined program', () => {
  test('is ended where the disk has no more than is kept free', async () => {
    process.env.TMPDIR = disk.path;
    const run = (words: string[]) =>
      runConfined(words, {
        ...{ directory: disk.path, ...AMPLE, keepFree: MIB },
        signal: AbortSignal.timeout(20_000),
      });
    expect(await run(['true'])).toMatchObject({ code: 0 });
    writeFileSync(join(disk.path, 'filler'), Buffer.alloc(19.5 * MIB));
    await expect(run(['sleep', '30'])).rejects.toMatchObject({ code: 'insufficient_storage' });
  });
});
