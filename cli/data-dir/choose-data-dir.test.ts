import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeTempDir, type TempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { chooseDataDir } from './choose-data-dir.ts';
import { lockDataDir } from './lock.ts';

let scratch: TempDir;
let checkout: string;
let systemDir: string;

beforeEach(() => {
  scratch = makeTempDir('data-dir');
  checkout = join(scratch.path, 'home', 'checkout');
  systemDir = join(scratch.path, 'system');
  fs.mkdirSync(checkout, { recursive: true });
});

afterEach(() => scratch.remove());

const modeOf = (path: string) => fs.statSync(path).mode & 0o777;

describe('any user', () => {
  test('takes data/ in the checkout', () => {
    expect(chooseDataDir({ checkout, systemDir })).toEqual({ dataDir: join(checkout, 'data') });
    expect(fs.existsSync(join(checkout, 'data'))).toBe(true);
  });

  test('takes what is given, made with the directories above it', () => {
    const given = join(scratch.path, 'a b', 'ü');
    expect(chooseDataDir({ given, checkout, systemDir })).toEqual({ dataDir: given });
    expect(modeOf(given) & 0o066).toBe(0);
  });

  test('names a file in the way', () => {
    const given = join(scratch.path, 'file');
    fs.writeFileSync(given, '');
    for (const place of [given, join(given, 'data')]) {
      expect(() => chooseDataDir({ given: place, checkout, systemDir })).toThrow(
        /^The data directory .* cannot be used: it .*is a file\.$/,
      );
    }
  });
});

describe('a directory where nothing can be made', () => {
  test.skipIf(!fs.existsSync('/proc/self'))('is refused at once', async () => {
    const given = '/proc/windlass/data';
    expect(() => chooseDataDir({ given, checkout, systemDir })).toThrow(
      'The data directory /proc/windlass cannot be used: no directory can be made there.',
    );
    await expect(lockDataDir({ dataDir: '/proc' })).rejects.toThrow(
      /^The data directory \/proc.* cannot be used: no directory can be made there\.$/,
    );
  });
});

describeUnless(missingRoot(), 'root', () => {
  test('in a closed home, takes a directory of this checkout below the system directory, with a notice', () => {
    fs.chmodSync(join(scratch.path, 'home'), 0o700);
    const chosen = chooseDataDir({ checkout, systemDir });
    expect(chosen.dataDir).toMatch(new RegExp(`^${systemDir}/checkout-[0-9a-f]{8}$`));
    expect(chosen.notice).toMatch(
      /^Data is kept in .*: Postgres runs as \w+, who cannot reach .*\/data\.$/,
    );
    expect(chooseDataDir({ checkout, systemDir })).toEqual(chosen);
    const sibling = join(scratch.path, 'home', 'elsewhere', 'checkout');
    expect(chooseDataDir({ checkout: sibling, systemDir }).dataDir).not.toBe(chosen.dataDir);
  });

  test('refuses a given directory in a closed home, and does not open that', () => {
    fs.chmodSync(join(scratch.path, 'home'), 0o700);
    const given = join(scratch.path, 'home', 'data');
    expect(() => chooseDataDir({ given, checkout, systemDir })).toThrow(/cannot be reached by \w+/);
    expect(modeOf(join(scratch.path, 'home'))).toBe(0o700);
  });

  test('opens an empty directory, so that one can be made for it with mktemp', () => {
    const given = join(scratch.path, 'empty');
    fs.mkdirSync(given, { mode: 0o700 });
    expect(chooseDataDir({ given, checkout, systemDir })).toEqual({ dataDir: given });
    expect(modeOf(given)).toBe(0o711);
  });

  test('opens one that has the keys alone, for a restore', () => {
    const given = join(scratch.path, 'keys');
    fs.mkdirSync(given, { mode: 0o700 });
    fs.writeFileSync(join(given, 'secrets.json'), '{}');
    expect(chooseDataDir({ given, checkout, systemDir })).toEqual({ dataDir: given });
    expect(modeOf(given)).toBe(0o711);
  });

  test('refuses a closed directory with other things in it, and leaves it closed', () => {
    const given = join(scratch.path, 'private');
    fs.mkdirSync(given, { mode: 0o700 });
    fs.writeFileSync(join(given, 'diary'), '');
    const refused = expect.objectContaining({
      message: expect.stringContaining('cannot be reached'),
      hint: expect.stringContaining(`chmod a+x '${given}'`),
    });
    expect(() => chooseDataDir({ given, checkout, systemDir })).toThrow(refused);
    expect(modeOf(given)).toBe(0o700);
  });

  test('of another user is for that user', () => {
    const given = join(scratch.path, 'theirs');
    fs.mkdirSync(given, { mode: 0o700 });
    fs.chownSync(given, 12_345, 12_345);
    const refused = expect.objectContaining({
      hint: expect.stringContaining(`Run it as the user that owns ${given}`),
    });
    expect(() => chooseDataDir({ given, checkout, systemDir })).toThrow(refused);
  });

  test('makes directories that can be entered under a strict umask', () => {
    const before = process.umask(0o077);
    try {
      const given = join(scratch.path, 'one', 'two');
      expect(chooseDataDir({ given, checkout, systemDir })).toEqual({ dataDir: given });
      expect(modeOf(given)).toBe(0o711);
    } finally {
      process.umask(before);
    }
  });
});
