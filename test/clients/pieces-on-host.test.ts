import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { joinPieces, preparePieces } from '../../clients/typescript/src/pieces/pieces-on-host.ts';
import type { ScriptSession } from '../../clients/typescript/src/pieces/script-on-host.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

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
    const place = { target, parents: true, folder: '.windlass-name-state' };
    await expect(preparePieces(here, place)).rejects.toMatchObject({ code: 'invalid_input' });
  }
  expect(readdirSync(real)).toEqual(['file']);
  expect(readdirSync(directory.path)).toHaveLength(2);
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
