import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { signalProcess } from '../../servers/processes.ts';
import { useAgentHarness } from '../../test/harness/hosts/agent-harness.ts';
import { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { makeShBash, SHADOWS } from '../../test/harness/hosts/sh-is-bash.ts';
import { changeUnchanged } from './change-unchanged.ts';
import { openRemoteFile } from './read-file.ts';

const harness = useAgentHarness();

test.each(['9'.repeat(60), '9007199254740993'])(
  'a file that a host says to be %s bytes long is none',
  async size => {
    const host = harness.makeHost('/bin/sh');
    const programs = join(host.account.home, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'ls'), `#!/bin/sh\necho - 1 0 0 ${size} x\n`, { mode: 0o755 });
    const path = join(host.account.home, 'file');
    writeFileSync(path, 'text');
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    await expect(openRemoteFile(host, { path })).rejects.toMatchObject({
      code: 'remote_connection_failed',
    });
  },
);

test('a shell that starts no program is told in its own words', async () => {
  const host = harness.makeHost('/bin/sh');
  const shell = join(host.account.home, 'restricted');
  writeFileSync(shell, `#!/bin/sh\nexec ${findProgram('bash')} -r "$@"\n`, { mode: 0o755 });
  host.account.shell = shell;
  const path = join(host.account.home, 'file');
  const signal = new AbortController().signal;
  const isUnusable = { code: 'shell_unusable', message: expect.stringContaining('restricted') };
  await expect(openRemoteFile(host, { path })).rejects.toMatchObject(isUnusable);
  const change = changeUnchanged(host, { path, state: undefined, command: 'true', signal });
  await expect(change).rejects.toMatchObject(isUnusable);
});

test('a shell that sshd does not start, as where there are too many logins for now, is no fault of it', async () => {
  const host = harness.makeHost('/bin/sh');
  const shell = join(host.account.home, 'none');
  writeFileSync(shell, '#!/bin/sh\nexit 254\n', { mode: 0o755 });
  host.account.shell = shell;
  const path = join(host.account.home, 'file');
  await expect(openRemoteFile(host, { path })).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
});

test('a file on a disk that does not answer is given up', { timeout: 10_000 }, async () => {
  const host = harness.makeHost('/bin/sh');
  const programs = join(host.account.home, 'bin');
  mkdirSync(programs);
  writeFileSync(join(programs, 'ls'), '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 });
  const path = join(host.account.home, 'file');
  writeFileSync(path, 'text');
  host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
  try {
    await expect(openRemoteFile(host, { path, silenceMs: 200 })).rejects.toMatchObject({
      code: 'time_limit',
      message: expect.stringContaining(path),
    });
  } finally {
    for (const pid of host.pids) signalProcess(-pid, 'SIGKILL');
  }
});

test('the state of a file is another one after a change that keeps its size and its time', async () => {
  const host = harness.makeHost('/bin/sh');
  const path = join(host.account.home, 'file');
  const write = (content: string) => {
    writeFileSync(path, content);
    utimesSync(path, 1_000_000, 1_000_000);
  };
  const read = async () => {
    const { tag, bytes } = await openRemoteFile(host, { path });
    return { tag, content: await text(bytes) };
  };
  write('first');
  const before = await read();
  expect(before).toEqual({ tag: expect.stringMatching(/^[0-9a-f]{32}$/), content: 'first' });
  expect(await read()).toEqual(before);
  write('other');
  const after = await read();
  expect([after.content, after.tag === before.tag]).toEqual(['other', false]);
});

test.each(['exit 1', 'echo unknown option', 'echo two; echo lines'])(
  'a file whose host has a stat that does `%s` has no state, and all its bytes',
  async script => {
    const host = harness.makeHost('/bin/sh');
    const programs = join(host.account.home, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'stat'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    const path = join(host.account.home, 'file');
    writeFileSync(path, 'text');
    const { tag, bytes } = await openRemoteFile(host, { path });
    expect([tag, await text(bytes)]).toEqual([undefined, 'text']);
  },
);

/** More than a pipe and the reader take in before it is read. */
const LARGE = 4 << 20;

test.each<[string, (path: string) => void, object]>([
  [
    'is written over in its place',
    path => writeFileSync(path, Buffer.alloc(LARGE, 'b'), { flag: 'r+' }),
    { code: 'conflict', message: expect.stringContaining('was changed while it was read') },
  ],
  [
    'is written over by something longer',
    path => writeFileSync(path, Buffer.alloc(LARGE + 1, 'b'), { flag: 'r+' }),
    { code: 'conflict' },
  ],
  ['becomes shorter', path => truncateSync(path, LARGE / 2), { code: 'conflict' }],
])('of a file that %s while it is read the last byte never comes', async (_, change, error) => {
  const host = harness.makeHost('/bin/sh');
  const path = join(host.account.home, 'file');
  writeFileSync(path, Buffer.alloc(LARGE, 'a'));
  const { bytes } = await openRemoteFile(host, { path });
  change(path);
  let length = 0;
  const read = async () => {
    for await (const piece of bytes) length += (piece as Buffer).length;
  };
  await expect(read()).rejects.toMatchObject(error);
  expect(length).toBeLessThan(LARGE);
});

test.each<[string, (path: string) => void]>([
  ['becomes longer', path => appendFileSync(path, 'b')],
  [
    'is replaced',
    path => {
      writeFileSync(`${path}.new`, 'b');
      renameSync(`${path}.new`, path);
    },
  ],
])('a file that %s while it is read is read as it was', async (_, change) => {
  const host = harness.makeHost('/bin/sh');
  const path = join(host.account.home, 'file');
  const content = Buffer.alloc(LARGE, 'a');
  writeFileSync(path, content);
  const { size, bytes } = await openRemoteFile(host, { path });
  change(path);
  expect([size, (await buffer(bytes)).equals(content)]).toEqual([LARGE, true]);
});

test.each([
  ['standard error', 'exec sleep 60 >/dev/null &'],
  ['both streams', 'exec sleep 60 &'],
])(
  'a file is read though what start-up files left running holds %s',
  async (_, line) => {
    const host = harness.makeHost('/bin/bash');
    writeFileSync(join(host.account.home, '.bashrc'), `${line}\n`);
    const path = join(host.account.home, 'file');
    try {
      for (const content of ['', 'text', 'a'.repeat(LARGE)]) {
        writeFileSync(path, content);
        const { size, bytes } = await openRemoteFile(host, { path });
        expect([size, (await text(bytes)) === content]).toEqual([content.length, true]);
      }
    } finally {
      for (const pid of host.pids) signalProcess(-pid, 'SIGKILL');
    }
  },
  15_000,
);

test('a file that a kernel makes up, of no size or of one that is too large, is read to its end', async () => {
  const host = harness.makeHost('/bin/sh');
  for (const path of ['/proc/version', '/sys/devices/system/cpu/online']) {
    const content = readFileSync(path);
    const { size, bytes } = await openRemoteFile(host, { path });
    expect([size, await buffer(bytes)]).toEqual([content.length, content]);
    const part = await openRemoteFile(host, { path, offset: 1, length: 2 });
    expect(await buffer(part.bytes)).toEqual(content.subarray(1, 3));
  }
  await expect(
    openRemoteFile(host, { path: '/sys/devices/system/cpu/online', offset: 100 }),
  ).rejects.toMatchObject({ code: 'conflict' });
});

test('a file of which the host does not tell a size is read up to a mebibyte', async () => {
  const host = harness.makeHost('/bin/sh');
  const programs = join(host.account.home, 'bin');
  mkdirSync(programs);
  writeFileSync(join(programs, 'ls'), '#!/bin/sh\necho - 1 0 0 0 x\n', { mode: 0o755 });
  const path = join(host.account.home, 'file');
  host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
  writeFileSync(path, Buffer.alloc(1 << 20, 'a'));
  expect((await openRemoteFile(host, { path })).size).toBe(1 << 20);
  appendFileSync(path, 'a');
  await expect(openRemoteFile(host, { path })).rejects.toMatchObject({ code: 'invalid_input' });
});

test.skipIf(process.getuid?.() !== 0)(
  'a file in a folder that may not be entered is not missing',
  async () => {
    const host = harness.makeHost('/bin/sh');
    // As another account; root may enter all folders.
    const account = { ...host.account, home: '/', uid: 65_534 };
    const other = new LocalExec(account);
    const folder = mkdtempSync(join(tmpdir(), 'windlass-locked-'));
    try {
      mkdirSync(join(folder, 'in'));
      writeFileSync(join(folder, 'in/file'), 'text');
      symlinkSync(join(folder, 'in/file'), join(folder, 'link'));
      chmodSync(folder, 0o755);
      chmodSync(join(folder, 'in'), 0);
      for (const name of ['in/file', 'in/none', 'in/file/below', 'link'])
        await expect(openRemoteFile(other, { path: join(folder, name) })).rejects.toMatchObject({
          code: 'forbidden',
          message: expect.stringContaining('may not enter'),
        });
      for (const name of ['none', 'none/below'])
        await expect(openRemoteFile(other, { path: join(folder, name) })).rejects.toMatchObject({
          code: 'not_found',
        });
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test('where /bin/sh is bash, functions named as utilities change no byte', async () => {
  const host = makeShBash(harness.makeHost(findProgram('bash') ?? '/bin/bash', SHADOWS));
  const path = join(host.account.home, 'file');
  const content = 'a line\n'.repeat(20_000);
  writeFileSync(path, content);
  const { size, tag, bytes } = await openRemoteFile(host, { path });
  expect([size, await text(bytes)]).toEqual([content.length, content]);
  expect(tag).toMatch(/^[0-9a-f]{32}$/);
  const part = await openRemoteFile(host, { path, offset: 7, length: 14 });
  expect(await text(part.bytes)).toBe('a line\na line\n');
  const state = part.state;
  const signal = new AbortController().signal;
  const change = { path, state, signal, command: 'rm -f "$f"' };
  expect(await changeUnchanged(host, change)).toBe(undefined);
  expect(existsSync(path)).toBe(false);
});
