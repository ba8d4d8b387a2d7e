import {
  appendFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRemoteSession, writeText } from '../../test/harness/hosts/remote-files.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { openRemoteFile } from './read-file.ts';
import { removeRemoteFile } from './remove-file.ts';
import { requireState } from './require-state.ts';

const signal = new AbortController().signal;

describeUnless(missingPrograms('sshd'), 'a file that is changed while its job is confirmed', () => {
  let sshd: TestSshd;
  let session: RemoteSession;
  let path: string;
  beforeAll(async () => {
    sshd = await startTestSshd();
    session = await openRemoteSession(sshd);
    path = join(sshd.home, 'file');
  });
  afterAll(async () => {
    session?.close();
    await sshd?.stop();
  });
  // As long, and perhaps in the same second.
  const confirm = async () => writeFileSync(path, 'other');
  const seen = async (tag = '*') => ({
    state: await requireState(session, { path, ifMatch: [tag], signal }),
    alone: (_: string, work: () => Promise<string | undefined>) => work(),
  });
  const readTag = async () => {
    const { tag, bytes } = await openRemoteFile(session, { path, signal });
    bytes.destroy();
    return `"${tag}"`;
  };

  test('is not replaced', async () => {
    writeFileSync(path, 'first');
    const expected = await seen(await readTag());
    await expect(writeText(session, path, 'mine', { expected, confirm })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect(readFileSync(path, 'utf8')).toBe('other');
    expect(readdirSync(sshd.home).filter(name => name.startsWith('.windlass-job'))).toEqual([]);
  });

  test('is replaced where any state is asked for, as long as it is there', async () => {
    writeFileSync(path, 'first');
    const expected = await seen();
    expect(await writeText(session, path, "it's mine", { expected, confirm })).toEqual({
      created: false,
    });
    expect(readFileSync(path, 'utf8')).toBe("it's mine");
    const gone = { expected, confirm: async () => rmSync(path) };
    await expect(writeText(session, path, 'mine', gone)).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect(readdirSync(sshd.home).filter(name => name.startsWith('.windlass-job'))).toEqual([]);
  });

  test('is not removed', async () => {
    writeFileSync(path, 'first');
    const expected = await seen(await readTag());
    await expect(
      removeRemoteFile(session, { path, expected, confirm, signal }),
    ).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(readFileSync(path, 'utf8')).toBe('other');
    const late = { path, expected: await seen(await readTag()), signal };
    await removeRemoteFile(session, { ...late, confirm: async () => {} });
    expect(readdirSync(sshd.home)).not.toContain('file');
  });

  test("stays where another one took its place before a removal came, whose job is another worker's", async () => {
    const link = join(sshd.home, 'removed');
    for (const [removed, place] of [
      [path, (text: string) => writeFileSync(path, text)],
      [link, (text: string) => symlinkSync(text, link)],
    ] as const) {
      place('first');
      let tries = 0;
      const confirmOnce = async () => {
        if (tries++ > 0) throw new Error('lease revoked');
        rmSync(removed);
        place('other');
      };
      const late = removeRemoteFile(session, { path: removed, confirm: confirmOnce, signal });
      await expect(late).rejects.toThrow('lease revoked');
      expect(readdirSync(sshd.home)).toContain(basename(removed));
      rmSync(removed);
    }
  });

  test('is removed without a condition though it changes all the time', async () => {
    writeFileSync(path, 'first');
    const grow = async () => appendFileSync(path, 'more');
    await removeRemoteFile(session, { path, confirm: grow, signal });
    expect(readdirSync(sshd.home)).not.toContain('file');
    writeFileSync(path, 'first');
    const gone = removeRemoteFile(session, { path, confirm: async () => rmSync(path), signal });
    await expect(gone).rejects.toMatchObject({ code: 'not_found' });
  });

  test('is not replaced through a link that leads there no more', async () => {
    const link = join(sshd.home, 'link');
    const other = join(sshd.home, 'elsewhere');
    for (const tag of [undefined, '*']) {
      for (const changeLink of [() => {}, () => symlinkSync('elsewhere', link)]) {
        writeFileSync(path, 'first');
        writeFileSync(other, 'other');
        symlinkSync('file', link);
        const expected = await seen(tag ?? (await readTag()));
        const change = async () => {
          rmSync(link);
          changeLink();
        };
        const written = writeText(session, link, 'mine', { expected, confirm: change });
        await expect(written).rejects.toMatchObject({ code: 'precondition_failed' });
        expect([path, other].map(name => readFileSync(name, 'utf8'))).toEqual(['first', 'other']);
        rmSync(link, { force: true });
      }
    }
  });

  test('is locked by one name, however it is named', async () => {
    const folder = join(sshd.home, 'folder');
    const link = join(folder, 'file');
    symlinkSync('.', folder);
    const locked: string[] = [];
    const alone = (name: string, work: () => Promise<string | undefined>) => {
      locked.push(name);
      return work();
    };
    const options = { expected: { state: undefined, alone }, confirm: async () => {} };
    const linked = join(sshd.home, 'linked');
    writeFileSync(path, 'first');
    symlinkSync(link, linked);
    for (const name of [path, link, linked]) await writeText(session, name, 'mine', options);
    for (const name of [linked, link])
      await removeRemoteFile(session, { path: name, signal, ...options });
    expect(locked).toEqual(Array(5).fill(path));
  });
});
