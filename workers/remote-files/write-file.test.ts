import {
  chmodSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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

/** Types of requests (draft-ietf-secsh-filexfer-02, section 3). */
const SSH_FXP = { open: 3, write: 6, mkdir: 14 };

/** An SFTP server that gets those requests for which this code, of their type and its count from 1, returns true. */
const wrapServer = (code: string) => `#!${process.execPath}
const { rmdirSync } = require('node:fs');
const { spawn } = require('node:child_process');
const server = spawn('${findSftpServer()}', { stdio: ['pipe', 'inherit', 'inherit'] });
const lets = (type, count) => { ${code} };
const counts = {};
let rest = Buffer.alloc(0);
process.stdin.on('data', bytes => {
  rest = Buffer.concat([rest, bytes]);
  while (rest.length > 4 && rest.length >= 4 + rest.readUInt32BE()) {
    const end = 4 + rest.readUInt32BE();
    const type = rest[4];
    counts[type] = (counts[type] ?? 0) + 1;
    if (lets(type, counts[type])) server.stdin.write(rest.subarray(0, end));
    rest = rest.subarray(end);
  }
});
process.stdin.on('end', () => server.stdin.end());
`;

/** Does work on a host whose SFTP server is wrapServer()'s, beside whose home is an empty folder. */
async function withWrappedServer(
  code: (folder: string) => string,
  work: (session: RemoteSession, folder: string) => Promise<void>,
): Promise<void> {
  const programs = makeTempDir('sftp-server');
  const files = makeTempDir('wrapped-writes');
  const program = join(programs.path, 'sftp-server');
  writeFileSync(program, wrapServer(code(files.path)), { mode: 0o755 });
  const host = await startTestSshd({ lines: [`Subsystem sftp ${program}`] });
  const session = await openRemoteSession(host);
  try {
    await work(session, files.path);
  } finally {
    session.close();
    await host.stop();
    files.remove();
    programs.remove();
  }
}

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

  test('takes a link to nowhere for something that is there, though it is made late', async () => {
    const [path, nowhere] = [join(sshd.home, 'link'), join(sshd.home, 'nowhere')];
    const link = () => symlinkSync(nowhere, path);
    link();
    const refused = { code: 'precondition_failed' };
    await expect(write(path, 'text')).rejects.toMatchObject(refused);
    rmSync(path);
    const late = { confirm: async () => link() };
    await expect(write(path, 'text', late)).rejects.toMatchObject(refused);
    expect(existsSync(nowhere)).toBe(false);
    rmSync(path);
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
    // A write with If-Match whose state was read before the earlier try's file came.
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

  test('writes through no link that has the name of its temporary file', async () => {
    const [notes, link] = [join(sshd.home, 'notes'), join(sshd.home, '.windlass-foreseen')];
    writeFileSync(notes, 'notes');
    symlinkSync(notes, link);
    const options = { exclusive: false, temporary: 'foreseen' };
    await expect(write(join(sshd.home, 'planned'), 'text', options)).rejects.toThrow();
    expect(readFileSync(notes, 'utf8')).toBe('notes');
    rmSync(link, { force: true });
  });

  test('removes the temporary files of earlier tries', async () => {
    const path = join(sshd.home, 'second');
    for (const left of ['job-1', 'job-2']) writeFileSync(join(sshd.home, `.windlass-${left}`), 'a');
    expect(await write(path, 'b', { exclusive: false })).toEqual({ created: true });
    expect(readFileSync(path, 'utf8')).toBe('b');
    expect(readdirSync(sshd.home).filter(name => name.startsWith('.windlass-job'))).toEqual([]);
  });

  test('writes to nothing that others put where its temporary file is to be', async () => {
    const place = makeTempDir('planted');
    const victim = join(place.path, 'thesis.txt');
    const temporary = join(place.path, '.windlass-planted');
    try {
      for (const plant of [
        () => symlinkSync(victim, temporary),
        () => linkSync(victim, temporary),
        () => symlinkSync(join(place.path, 'elsewhere'), temporary),
      ]) {
        writeFileSync(victim, 'mine');
        chmodSync(victim, 0o666);
        plant();
        const planted = { temporary: 'planted', stale: [], mode: 0o600 };
        const written = write(join(place.path, 'new'), 'secret', planted);
        await expect(written).rejects.toMatchObject({ code: 'invalid_input' });
        expect(readFileSync(victim, 'utf8')).toBe('mine');
        expect(statSync(victim).mode & 0o777).toBe(0o666);
        expect(readdirSync(place.path)).toEqual(['thesis.txt']);
      }
    } finally {
      place.remove();
    }
  });

  test('removes its temporary file where the server answers no write', async () => {
    await withWrappedServer(
      () => `return type !== ${SSH_FXP.write}`,
      async (other, folder) => {
        const written = writeOn(other, join(folder, 'new'), 'text', { stale: [], answerMs: 500 });
        await expect(written).rejects.toMatchObject({ code: 'time_limit' });
        expect(readdirSync(folder)).toEqual([]);
      },
    );
  });

  test.each([
    ['which it has made', { request: SSH_FXP.open, counts: [1, 2], taken: 'new/deep' }],
    ['in which it makes one', { request: SSH_FXP.mkdir, counts: [2, 4], taken: 'new' }],
  ])('makes the directory %s again where a refused write takes it away', async (_, given) => {
    const { request, counts, taken } = given;
    await withWrappedServer(
      folder => `
        if (type === ${request} && [${counts}].includes(count)) rmdirSync('${join(folder, taken)}');
        return true;`,
      async (other, folder) => {
        const path = join(folder, 'new/deep/file');
        expect(await writeOn(other, path, 'text', { parents: true })).toEqual({ created: true });
        expect(readFileSync(path, 'utf8')).toBe('text');
      },
    );
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
