import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { preparePieces } from '../../clients/typescript/src/pieces/pieces-on-host.ts';
import type { ScriptSession } from '../../clients/typescript/src/pieces/script-on-host.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

const directory = makeTempDir('pieces');
afterAll(() => directory.remove());

/** What the service answers to a command that this machine runs. */
const here: ScriptSession = {
  sid: 'here',
  run: (command, { stdin }) => ({
    wait: async () => {
      const { status, stdout, stderr } = spawnSync(command, { input: stdin });
      const text = { output: stdout.toString(), errors: stderr.toString() };
      return { returncode: status ?? -1, ...text, job: 'job' };
    },
  }),
};

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
