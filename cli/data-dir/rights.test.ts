import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeTempDir, type TempDir } from '../../test/harness/files/temp-dir.ts';
import { chooseDataDir } from './choose-data-dir.ts';

let scratch: TempDir;
let checkout: string;
let systemDir: string;

beforeEach(() => {
  scratch = makeTempDir('data-dir-rights');
  checkout = join(scratch.path, 'checkout');
  systemDir = join(scratch.path, 'system');
});

afterEach(() => scratch.remove());

const modeOf = (path: string) => fs.statSync(path).mode & 0o777;

test('closes what is in it to others, whoever made the directory, and nothing that is not of Windlass', () => {
  const given = join(scratch.path, 'made-before');
  const others = fs.mkdtempSync(join(scratch.path, 'shared-'));
  for (const directory of [given, others]) {
    fs.mkdirSync(join(directory, 'objects', 'objects'), { recursive: true });
    for (const name of ['secrets.json', 'postgres.log', 'postgres.password'])
      fs.writeFileSync(join(directory, name), 'x');
    fs.chmodSync(directory, 0o777);
    fs.chmodSync(join(directory, 'objects'), 0o755);
    for (const name of fs.readdirSync(directory))
      if (name !== 'objects') fs.chmodSync(join(directory, name), 0o664);
  }
  fs.writeFileSync(join(others, 'a file of others'), 'x', { mode: 0o644 });
  fs.symlinkSync(join(others, 'a file of others'), join(others, 'postgres.port'));
  expect(() => chooseDataDir({ given: others, checkout, systemDir, isStart: true })).toThrow(
    'Every user may write to',
  );
  expect(chooseDataDir({ given, checkout, systemDir })).toEqual({ dataDir: given });
  for (const directory of [given, others]) {
    for (const name of ['objects', 'secrets.json', 'postgres.log', 'postgres.password'])
      expect([name, modeOf(join(directory, name)) & 0o077]).toEqual([name, 0]);
  }
  expect(modeOf(given) & 0o066).toBe(0);
  expect(modeOf(others)).toBe(0o777);
  expect(modeOf(join(others, 'a file of others'))).toBe(0o644);
  fs.chmodSync(others, 0o1777);
  expect(chooseDataDir({ given: others, checkout, systemDir, isStart: true })).toEqual({
    dataDir: others,
  });
});

test('takes neither a directory nor keys of another user', context => {
  if (process.geteuid?.() !== 0) return context.skip('needs root, to give files to others');
  for (const name of ['', 'secrets.json']) {
    const given = fs.mkdtempSync(join(scratch.path, 'of-another-'));
    fs.chmodSync(given, 0o711);
    fs.writeFileSync(join(given, 'secrets.json'), '{}');
    fs.chownSync(join(given, name), 12_345, 12_345);
    const options = { given, checkout, systemDir };
    expect(() => chooseDataDir({ ...options, isStart: true })).toThrow('another user (12345)');
    expect(chooseDataDir(options)).toEqual({ dataDir: given });
  }
});

test('takes nothing that another user has put under a name of Windlass', context => {
  if (process.geteuid?.() !== 0) return context.skip('needs root, to give files to others');
  for (const name of [
    'postgres.password',
    'objects',
    'objects/incoming',
    'lock',
    'postgres.port',
  ]) {
    const given = fs.mkdtempSync(join(scratch.path, 'planted-'));
    fs.chmodSync(given, 0o1777);
    if (name.startsWith('objects')) fs.mkdirSync(join(given, name), { recursive: true });
    else fs.writeFileSync(join(given, name), 'x');
    fs.lchownSync(join(given, name), 12_345, 12_345);
    const options = { given, checkout, systemDir, isStart: true };
    expect(() => chooseDataDir(options)).toThrow('another user (12345)');
    fs.rmSync(join(given, name), { recursive: true });
    fs.symlinkSync('/etc', join(given, name.replace('/incoming', '-')));
    fs.lchownSync(join(given, name.replace('/incoming', '-')), 12_345, 12_345);
    if (name !== 'objects/incoming')
      expect(() => chooseDataDir(options)).toThrow('another user (12345)');
  }
});

test('takes no database that another user has put into a directory where all may write', context => {
  if (process.geteuid?.() !== 0) return context.skip('needs root, to give files to others');
  const given = fs.mkdtempSync(join(scratch.path, 'planted-'));
  fs.writeFileSync(join(given, 'a file of others'), 'x');
  fs.mkdirSync(join(given, 'postgres'));
  fs.chownSync(join(given, 'postgres'), 12_345, 12_345);
  const options = { given, checkout, systemDir, isStart: true };
  fs.chmodSync(given, 0o1777);
  expect(() => chooseDataDir(options)).toThrow('another user (12345)');
  fs.rmdirSync(join(given, 'postgres'));
  fs.symlinkSync('/etc', join(given, 'postgres.init-x'));
  fs.lchownSync(join(given, 'postgres.init-x'), 12_345, 12_345);
  expect(() => chooseDataDir(options)).toThrow('another user (12345)');
});

test('takes a volume that root has made for a group of the service', context => {
  if (process.geteuid?.() !== 0) return context.skip('needs root, to give directories to a group');
  fs.chmodSync(scratch.path, 0o711);
  const before = process.getgroups?.() ?? [];
  for (const [mode, gid] of [
    [0o2775, 12_345],
    [0o777, 0],
  ] as const) {
    const given = fs.mkdtempSync(join(scratch.path, 'volume-'));
    fs.chownSync(given, 0, gid);
    fs.chmodSync(given, mode);
    fs.writeFileSync(join(given, 'secrets.json'), '{}');
    fs.chownSync(join(given, 'secrets.json'), 12_346, 12_346);
    process.setgroups?.([12_345]);
    process.setegid?.(12_346);
    process.seteuid?.(12_346);
    try {
      const options = { given, checkout, systemDir, isStart: true };
      expect(chooseDataDir(options)).toEqual({ dataDir: given });
    } finally {
      process.seteuid?.(0);
      process.setegid?.(0);
      process.setgroups?.(before);
    }
  }
});

test('takes no directory with other things in it that others may write to, whoever made it', context => {
  const given = fs.mkdtempSync(join(scratch.path, 'open-'));
  fs.writeFileSync(join(given, 'a file of others'), 'x');
  const options = { given, checkout, systemDir, isStart: true };
  fs.chmodSync(given, 0o775);
  expect(chooseDataDir(options)).toEqual({ dataDir: given });
  fs.chmodSync(given, 0o777);
  expect(() => chooseDataDir(options)).toThrow('Every user may write to');
  if (process.geteuid?.() !== 0) return context.skip('needs root, to give directories to a group');
  fs.chownSync(given, 0, 12_345);
  fs.chmodSync(given, 0o775);
  expect(() => chooseDataDir(options)).toThrow('The group 12345 may write to');
});
