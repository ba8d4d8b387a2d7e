import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findSftpServer } from '../../servers/sshd.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { openRemoteSession, writeText } from '../../test/harness/hosts/remote-files.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import type { WriteFileOptions } from './write-file.ts';

const alone = (_: string, work: () => Promise<string | undefined>) => work();

/** An SFTP server that gets no SSH_FXP_WRITE (6 in draft-ietf-secsh-filexfer-02, section 3), and so answers none. */
const silentServer = () => `#!${process.execPath}
const { spawn } = require('node:child_process');
const server = spawn('${findSftpServer()}', { stdio: ['pipe', 'inherit', 'inherit'] });
let rest = Buffer.alloc(0);
process.stdin.on('data', bytes => {
  rest = Buffer.concat([rest, bytes]);
  while (rest.length > 4 && rest.length >= 4 + rest.readUInt32BE()) {
    const end = 4 + rest.readUInt32BE();
    if (rest[4] !== 6) server.stdin.write(rest.subarray(0, end));
    rest = rest.subarray(end);
  }
});
process.stdin.on('end', () => server.stdin.end());
`;

describeUnless(missingPrograms('sshd'), 'a write that is tried again', () => {
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

  const write = (path: string, text: string, options: Partial<WriteFileOptions> = {}) =>
    writeOn(session, path, text, options);
  const writeOn = (
    on: RemoteSession,
    path: string,
    text: string,
    options: Partial<WriteFileOptions>,
  ) => writeText(on, path, text, { exclusive: true, mayBeNamed: true, ...options });

  test('takes the file that an earlier try has made for its own, by its bytes', async () => {
    const path = join(sshd.home, 'made');
    const text = 'x'.repeat(100_000);
    writeFileSync(path, text);
    await expect(write(path, text, { mayBeNamed: false })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect(await write(path, text)).toEqual({ created: true });
    for (const other of [`${text}y`, text.replace(/x$/, 'y'), ''])
      await expect(write(path, other)).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('takes the file for its own that an earlier try makes late', async () => {
    const path = join(sshd.home, 'late');
    const text = 'x'.repeat(1_000);
    const makeLate = (mayBeNamed: boolean, made: string) =>
      write(path, text, { mayBeNamed, confirm: async () => writeFileSync(path, made) });
    expect(await makeLate(true, text)).toEqual({ created: true });
    for (const [mayBeNamed, made] of [
      [true, 'other'],
      [false, text],
    ] as const) {
      rmSync(path);
      await expect(makeLate(mayBeNamed, made)).rejects.toMatchObject({
        code: 'precondition_failed',
      });
    }
    // Of If-Match: read before the earlier try's came.
    const expected = { state: '1 5 earlier', alone };
    expect(await write(path, text, { exclusive: false, expected })).toEqual({ created: false });
    writeFileSync(path, 'other');
    await expect(write(path, text, { exclusive: false, expected })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
  });

  test('removes its temporary file where it is cancelled', async () => {
    const cancel = new AbortController();
    const left = () => readdirSync(sshd.home).filter(name => name.startsWith('.windlass-'));
    const bytes = new Readable({ read() {} });
    bytes.push(Buffer.alloc(100_000));
    const written = write(join(sshd.home, 'third'), 'x', {
      bytes,
      size: 200_000,
      mayBeNamed: false,
      signal: cancel.signal,
    });
    written.catch(() => {});
    await waitFor(() => left().length > 0, { what: 'the temporary file' });
    cancel.abort(new Error('cancelled'));
    bytes.destroy();
    await expect(written).rejects.toThrow();
    expect(left()).toEqual([]);
  });

  test('a private file is private from its first byte', async () => {
    const cancel = new AbortController();
    const bytes = new Readable({ read() {} });
    bytes.push(Buffer.alloc(100_000));
    const temporary = join(sshd.home, '.windlass-private');
    const written = write(join(sshd.home, 'private'), 'x', {
      bytes,
      size: 200_000,
      mayBeNamed: false,
      signal: cancel.signal,
      mode: 0o640,
      temporary: 'private',
    });
    written.catch(() => {});
    await waitFor(() => existsSync(temporary), { what: 'the temporary file' });
    expect(statSync(temporary).mode & 0o777).toBe(0o600);
    cancel.abort(new Error('cancelled'));
    bytes.destroy();
    await expect(written).rejects.toThrow();
    await write(join(sshd.home, 'shared'), 'x', { mode: 0o640 });
    expect(statSync(join(sshd.home, 'shared')).mode & 0o777).toBe(0o640);
  });

  test('removes the temporary files of earlier tries', async () => {
    const path = join(sshd.home, 'second');
    for (const left of ['job-1', 'job-2']) writeFileSync(join(sshd.home, `.windlass-${left}`), 'a');
    expect(await write(path, 'b', { exclusive: false })).toEqual({ created: true });
    expect(readFileSync(path, 'utf8')).toBe('b');
    expect(readdirSync(sshd.home).filter(name => name.startsWith('.windlass-job'))).toEqual([]);
  });

  test('removes its temporary file where the server answers no write', async () => {
    const directory = makeTempDir('silent-writes');
    const program = join(directory.path, 'sftp-server');
    writeFileSync(program, silentServer(), { mode: 0o755 });
    const host = await startTestSshd({ lines: [`Subsystem sftp ${program}`] });
    const other = await openRemoteSession(host);
    try {
      const written = writeOn(other, join(host.home, 'new'), 'text', { stale: [], answerMs: 500 });
      await expect(written).rejects.toMatchObject({ code: 'time_limit' });
      expect(readdirSync(host.home).filter(name => /windlass-job|new/.test(name))).toEqual([]);
    } finally {
      other.close();
      await host.stop();
      directory.remove();
    }
  });

  test('a new file is written though its temporary name cannot be removed', async () => {
    const host = await startTestSshd({
      lines: [`Subsystem sftp ${findSftpServer()} -P remove`],
    });
    const other = await openRemoteSession(host);
    try {
      const path = join(host.home, 'kept');
      expect(await writeOn(other, path, 'text', { stale: [] })).toEqual({ created: true });
      expect(readFileSync(path, 'utf8')).toBe('text');
    } finally {
      other.close();
      await host.stop();
    }
  });
});
