import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
});
