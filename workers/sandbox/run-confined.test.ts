import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { NEEDS_MOUNT } from '../../test/harness/hosts/small-disk.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
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

/** In a session of its own, which nothing of the program ends. */
const SLEEPER = `sleep 61.${process.pid}`;
const isLinux = process.platform === 'linux';
const needsLinux = isLinux ? undefined : { reason: 'needs Linux', obtainable: false };

describeUnless(needsLinux, 'a confined program that leaves a process behind', () => {
  afterEach(() => void spawnSync('pkill', ['-x', '-f', SLEEPER]));
  const run = async (script: string, seconds: number) => {
    const { signal } = new AbortController();
    const words = ['sh', '-c', `setsid ${SLEEPER} & ${script}`];
    const end = await runConfined(words, { ...AMPLE, directory: '/', seconds, signal });
    expect(spawnSync('pgrep', ['-x', '-f', SLEEPER]).status).toBe(0);
    return end;
  };

  test('ends at its limit all the same', async () => {
    expect(await run('exec sleep 62', 1)).toMatchObject({ code: 137 });
  });

  test('has told all that it told, and ends with its own code', async () => {
    const stderr = expect.stringMatching(/^1\n2\n[\s\S]*\n1000\n$/);
    expect(await run('seq 1000 >&2; exit 3', 60)).toEqual({ code: 3, stderr });
  });
});

describeUnless(skip, 'a confined program', () => {
  test('is ended where the disk has no more than is kept free', async () => {
    process.env.TMPDIR = disk.path;
    const run = (words: string[]) =>
      runConfined(words, {
        directory: disk.path,
        ...AMPLE,
        keepFree: MIB,
        signal: AbortSignal.timeout(20_000),
      });
    expect(await run(['true'])).toMatchObject({ code: 0 });
    writeFileSync(join(disk.path, 'filler'), Buffer.alloc(19.5 * MIB));
    await expect(run(['sleep', '30'])).rejects.toMatchObject({ code: 'insufficient_storage' });
  });
});
