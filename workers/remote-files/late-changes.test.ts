import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRemoteSession, writeText } from '../../test/harness/hosts/remote-files.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { statFile } from './compare-file.ts';
import { removeRemoteFile } from './remove-file.ts';

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
  const confirm = async () => writeFileSync(path, 'version 2');

  test('is not replaced', async () => {
    writeFileSync(path, 'first');
    const unchanged = await statFile(session, path, signal);
    await expect(writeText(session, path, 'mine', { unchanged, confirm })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect(readFileSync(path, 'utf8')).toBe('version 2');
    expect(readdirSync(sshd.home).filter(name => name.startsWith('.windlass-job'))).toEqual([]);
  });

  test('is not removed', async () => {
    writeFileSync(path, 'first');
    const unchanged = await statFile(session, path, signal);
    await expect(
      removeRemoteFile(session, { path, unchanged, confirm, signal }),
    ).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(readFileSync(path, 'utf8')).toBe('version 2');
    const late = { path, unchanged: await statFile(session, path, signal), signal };
    await removeRemoteFile(session, { ...late, confirm: async () => {} });
    expect(readdirSync(sshd.home)).not.toContain('file');
  });
});
