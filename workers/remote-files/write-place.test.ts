import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRemoteSession, writeText } from '../../test/harness/hosts/remote-files.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Müller in ISO 8859-1, below this folder. */
const latin = (folder: string) =>
  Buffer.concat([Buffer.from(`${folder}/M`), Buffer.from([0xfc]), Buffer.from('ller')]);
const below = (folder: Buffer, name: string) => Buffer.concat([folder, Buffer.from(`/${name}`)]);

describeUnless(missingPrograms('sshd'), 'the place of a written file', () => {
  let sshd: TestSshd;
  let session: RemoteSession;
  beforeAll(async () => {
    sshd = await startTestSshd();
    session = await openRemoteSession(sshd);
  });
  afterAll(async () => {
    session?.close();
    await sshd?.stop();
  });

  test('a folder that only a link can name has its files replaced', async () => {
    const data = join(sshd.home, 'data');
    const real = latin(data);
    mkdirSync(real, { recursive: true });
    for (const name of ['day.dat', 'linked']) writeFileSync(below(real, name), 'before');
    const home = join(sshd.home, 'home');
    symlinkSync(real, home);
    symlinkSync('linked', below(real, 'link'));
    symlinkSync('../new', below(real, 'dangling'));
    const write = (name: string) => writeText(session, join(home, name), name, { parents: true });
    expect(await write('day.dat')).toEqual({ created: false });
    expect(await write('link')).toEqual({ created: false });
    expect(await write('dangling')).toEqual({ created: true });
    expect(readFileSync(below(real, 'day.dat'), 'utf8')).toBe('day.dat');
    expect(readFileSync(below(real, 'linked'), 'utf8')).toBe('link');
    expect(readFileSync(join(data, 'new'), 'utf8')).toBe('dangling');
    expect(readdirSync(data)).toHaveLength(2);
  });

  test('a file that a link names in another encoding is refused', async () => {
    const folder = join(sshd.home, 'refused');
    mkdirSync(folder);
    const real = latin(folder);
    const link = join(folder, 'link');
    symlinkSync(real, link);
    for (const isThere of [false, true]) {
      if (isThere) writeFileSync(real, 'before');
      await expect(writeText(session, link, 'x', { parents: true })).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining('UTF-8'),
      });
      expect(readdirSync(folder)).toHaveLength(isThere ? 2 : 1);
    }
    expect(readFileSync(real, 'utf8')).toBe('before');
  });

  test('the folder above a linked one is that of its target', async () => {
    const folder = join(sshd.home, 'above');
    mkdirSync(join(folder, 'deep/target'), { recursive: true });
    symlinkSync('deep/target', join(folder, 'link'));
    const above = `${folder}/link/..`;
    expect(
      await writeText(session, `${above}/new`, 'x', {
        confirm: async () => expect(existsSync(`${folder}/deep/.windlass-job-2`)).toBe(true),
      }),
    ).toEqual({ created: true });
    expect(readFileSync(join(folder, 'deep/new'), 'utf8')).toBe('x');
    const confirm = async () => Promise.reject(new Error('cancelled'));
    await expect(writeText(session, `${above}/other`, 'x', { confirm })).rejects.toThrow();
    expect(readdirSync(join(folder, 'deep')).sort()).toEqual(['new', 'target']);
  });
});
