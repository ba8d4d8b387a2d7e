import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  joinPieces,
  preparePieces,
  removePieces,
} from '../../clients/typescript/src/pieces/pieces-on-host.ts';
import type { ScriptSession } from '../../clients/typescript/src/pieces/script-on-host.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { missingRoot, skipTest } from '../harness/skip.ts';

const directory = makeTempDir('pieces');
afterAll(() => directory.remove());

/** What the service answers to a command that this machine runs, with the programs of this folder first. */
const hereWith = (programs: string): ScriptSession => ({
  sid: 'here',
  run: (command, { stdin }) => ({
    wait: async () => {
      const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` };
      const { status, stdout, stderr } = spawnSync(command, { input: stdin, env });
      const text = { output: stdout.toString(), errors: stderr.toString() };
      return { returncode: status ?? -1, ...text, job: 'job' };
    },
  }),
});
const here = hereWith('/nonexistent');

/** One that this account may give to a file, and does not by itself. */
const group =
  process.getuid?.() === 0 ? 4242 : process.getgroups?.().find(id => id !== process.getgid?.());

test('a file that a link names in another encoding gets no pieces', async () => {
  const real = Buffer.concat([Buffer.from(`${directory.path}/M`), Buffer.from([0xfc])]);
  mkdirSync(real);
  writeFileSync(Buffer.concat([real, Buffer.from('/file')]), 'before');
  const link = join(directory.path, 'link');
  symlinkSync(Buffer.concat([real, Buffer.from('/file')]), link);
  const nowhere = join(directory.path, 'M\ufffd', 'file');
  for (const target of [link, nowhere]) {
    const named = { target, parents: true, folder: '.windlass-name-state' };
    await expect(preparePieces(here, named)).rejects.toMatchObject({ code: 'invalid_input' });
  }
  expect(readdirSync(real)).toEqual(['file']);
  expect(readdirSync(directory.path)).toHaveLength(2);
});

const NAME = '.windlass-0123456789abcdef-0123456789abcdef';
let made = 0;
/** Of a file in a folder where others may write. */
function makeTarget() {
  const folder = join(directory.path, `shared ${++made}`);
  mkdirSync(folder);
  chmodSync(folder, 0o777);
  return {
    folder,
    of: { target: join(folder, 'file'), folder: NAME },
    path: join(folder, NAME),
  };
}
const after = {
  names: ['0-5'],
  size: 5,
  digest: createHash('sha256').update('after').digest('hex'),
};
const detail = expect.stringContaining("not this account's alone");
const notOwn = { code: 'not_written', detail };
const notPrivate = { code: 'not_private', detail };

test('pieces come into a folder of the account alone, and whole ones are found there', async () => {
  const { of: target } = makeTarget();
  const { folder } = await preparePieces(here, target);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  // As one of an earlier copy.
  writeFileSync(join(folder, '0-5'), 'after');
  writeFileSync(join(folder, '5-5'), 'cut');
  expect((await preparePieces(here, target)).stored).toEqual(new Map([[0, 5]]));
  // A piece is never written over: one that is cut makes room.
  expect(readdirSync(folder)).toEqual(['0-5']);
});

test('where modes are not kept, no folder is used, and none stays', async () => {
  const { folder, of: target } = makeTarget();
  const programs = join(directory.path, 'open');
  mkdirSync(programs);
  // As on a share whose modes are those of its mount.
  writeFileSync(join(programs, 'ls'), '#!/bin/sh\necho "drwxrwxrwx 2 0 0 .  "\n', { mode: 0o755 });
  await expect(preparePieces(hereWith(programs), target)).rejects.toMatchObject(notPrivate);
  expect(readdirSync(folder)).toEqual([]);
});

test('a link in place of the folder is neither used nor followed', async () => {
  const { folder, of: target, path } = makeTarget();
  const other = join(folder, 'other');
  mkdirSync(other, { mode: 0o700 });
  writeFileSync(join(other, '0-5'), 'after');
  symlinkSync(other, path);
  await expect(preparePieces(here, target)).rejects.toMatchObject(notPrivate);
  rmSync(path);
  const pieces = await preparePieces(here, target);
  renameSync(path, join(folder, 'away'));
  symlinkSync(other, path);
  await expect(joinPieces(here, pieces, after)).rejects.toMatchObject(notOwn);
  await removePieces(here, pieces, AbortSignal.timeout(60_000));
  expect(readdirSync(other)).toEqual(['0-5']);
  expect(existsSync(target.target)).toBe(false);
});

test('a folder that others may write to is emptied of pieces and made again, links too', async () => {
  const { folder, of: target, path } = makeTarget();
  const notes = join(folder, 'notes');
  writeFileSync(notes, 'notes');
  mkdirSync(path);
  chmodSync(path, 0o777);
  symlinkSync(notes, join(path, '0-5'));
  const pieces = await preparePieces(here, target);
  expect(pieces.stored.size).toBe(0);
  expect(readdirSync(path)).toEqual([]);
  // Where another account did so meanwhile nothing is joined.
  writeFileSync(join(path, '0-5'), 'after');
  writeFileSync(join(path, 'of others'), '');
  chmodSync(path, 0o770);
  await expect(joinPieces(here, pieces, after)).rejects.toMatchObject(notOwn);
  expect(existsSync(target.target)).toBe(false);
  expect(readFileSync(notes, 'utf8')).toBe('notes');
});

test('a folder of another account is refused and stays', async context => {
  const skip = missingRoot();
  if (skip) skipTest(context, skip);
  const { of: target, path } = makeTarget();
  mkdirSync(path);
  writeFileSync(join(path, '0-5'), 'after');
  chownSync(path, 65_534, 65_534);
  await expect(preparePieces(here, target)).rejects.toMatchObject(notPrivate);
  expect(readdirSync(path)).toEqual(['0-5']);
});

test('of old folders only those go that are named like ours and hold nothing but pieces', async () => {
  const { folder, of: target } = makeTarget();
  const old = new Date(Date.now() - 8 * 86_400_000);
  const make = (name: string, files: string[]) => {
    mkdirSync(join(folder, name));
    for (const file of files) writeFileSync(join(folder, name, file), 'text');
    utimesSync(join(folder, name), old, old);
  };
  const pieces = ['0-4', '4-4', 'whole-77', 'whole', '.windlass-job-1-0'];
  const other = 'f'.repeat(16);
  make('.windlass-notes-2025', []);
  make('.windlass-notes-2026', ['0-4']);
  make(`.windlass-${other}-mine`, [...pieces, 'notes']);
  make(`.windlass-${other}-${other}`, pieces);
  make(`.windlass-${other}${other}-once`, []);
  // Of this file in another state, however old.
  make(`${NAME.slice(0, -16)}notes`, ['notes']);
  make(`${NAME.slice(0, -16)}${other}`, pieces);
  await preparePieces(here, target);
  expect(readdirSync(folder).sort()).toEqual(
    [
      NAME,
      `${NAME.slice(0, -16)}notes`,
      `.windlass-${other}-mine`,
      '.windlass-notes-2025',
      '.windlass-notes-2026',
    ].sort(),
  );
  expect(readdirSync(join(folder, `.windlass-${other}-mine`)).sort()).toEqual(
    [...pieces, 'notes'].sort(),
  );
});

test.skipIf(group === undefined)(
  'a file keeps its group with its permissions, or the group has none',
  async () => {
    const target = join(directory.path, 'shared');
    const programs = join(directory.path, 'programs');
    mkdirSync(programs);
    writeFileSync(join(programs, 'chgrp'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const replace = async (session: ScriptSession, mode?: number) => {
      writeFileSync(target, 'before');
      chownSync(target, -1, group as number);
      chmodSync(target, 0o640);
      const pieces = await preparePieces(session, { target, folder: '.windlass-name-state' });
      writeFileSync(join(pieces.folder, '0-5'), 'after');
      const digest = createHash('sha256').update('after').digest('hex');
      await joinPieces(session, pieces, { names: ['0-5'], size: 5, digest, mode });
      expect(readFileSync(target, 'utf8')).toBe('after');
      const found = statSync(target);
      return [found.gid === group, found.mode & 0o7777];
    };
    expect(await replace(here)).toEqual([true, 0o640]);
    expect(await replace(here, 0o664)).toEqual([true, 0o664]);
    const strict = hereWith(programs);
    expect(await replace(strict)).toEqual([false, 0o600]);
    expect(await replace(strict, 0o664)).toEqual([false, 0o664]);
  },
);
