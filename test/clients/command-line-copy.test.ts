import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { startCommandLine } from '../harness/clients/command-line.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MIB = 1 << 20;
const SLOW = 12 * MIB;

describeStack(missingPrograms('sshd'), 'windlass cp', form => {
  const { stack, sshd } = useRemoteStack(form);
  let link: TcpProxy;
  useStarted(async () => {
    const { hostname, port } = new URL(stack.url);
    link = await startTcpProxy({ host: hostname, port: Number(port) });
    return link;
  });
  const line = useStarted(startCommandLine);
  let there: string;
  let here: string;
  let login: string[];
  let tests = 0;

  beforeAll(async () => {
    const key = join(line.home, 'key');
    writeFileSync(key, sshd.privateKey, { mode: 0o600 });
    login = ['--user', sshd.username, '--key', key];
    const url = `http://127.0.0.1:${link.port}`;
    const args = ['login', url, '--user', stack.username, '--password-stdin'];
    expect((await line.run(args, { input: stack.password })).code).toBe(0);
    expect((await line.run(['run', 'host', ...login, '--', 'true'])).code).toBe(0);
  });
  beforeEach(() => {
    tests++;
    here = join(line.home, `here ${tests}`);
    there = join(sshd.home, `there ${tests}`);
    for (const folder of [here, there]) mkdirSync(folder);
  });

  /** Starts a copy over a slow link, and kills it once `isUnderWay`. */
  async function killInTheMiddle(args: string[], isUnderWay: () => boolean): Promise<void> {
    for (const direction of ['up', 'down'] as const) link.throttle(direction, SLOW);
    const { child, ended } = line.start(['cp', ...login, ...args]);
    await waitFor(isUnderWay, { what: 'some bytes', intervalMs: 5 });
    child.kill('SIGKILL');
    expect((await ended).code).toBe(null);
    // What it had sent and the slow link still holds is not of the next copy.
    link.cut();
    for (const direction of ['up', 'down'] as const) link.throttle(direction, Infinity);
  }
  /** Cuts the link each time when `bytes` bytes have passed, until it is over; how often. */
  async function cutAtBytes(bytes: number, over: AbortSignal): Promise<number> {
    for (let cuts = 0; ; cuts++) {
      const from = link.bytes.up;
      link.cutAfter('up', bytes);
      await waitFor(() => over.aborted || link.bytes.up >= from + bytes, {
        what: `${bytes} more bytes`,
        timeoutMs: 120_000,
        intervalMs: 5,
      });
      if (!over.aborted) continue;
      link.cutAfter('up', Infinity);
      return cuts;
    }
  }
  /** Copies to the end; the bytes that passed the link in a direction. */
  async function copy(args: string[], direction: 'up' | 'down'): Promise<number> {
    const before = link.bytes[direction];
    expect(await line.run(['cp', ...login, ...args])).toEqual({ code: 0, stdout: '', stderr: '' });
    return link.bytes[direction] - before;
  }
  const partials = (folder: string) =>
    readdirSync(folder)
      .filter(name => name.startsWith('.windlass'))
      .map(name => join(folder, name));
  const received = () => partials(here).reduce((sum, path) => sum + statSync(path).size, 0);
  const pieces = () =>
    partials(there).flatMap(path => readdirSync(path).filter(name => /^\d+-\d+$/.test(name)))
      .length;

  test('a copy from a host that was killed goes on where it was', async () => {
    const bytes = randomBytes(24 * MIB);
    const target = join(here, 'copied');
    writeFileSync(join(there, 'file'), bytes);
    writeFileSync(target, 'as before', { mode: 0o604 });
    const args = [`host:there ${tests}/file`, target];
    await killInTheMiddle(args, () => received() > 6 * MIB);
    const kept = received();
    expect(readFileSync(target, 'utf8')).toBe('as before');
    expect(await copy(args, 'down')).toBeLessThan(bytes.length - kept + MIB);
    expect(readFileSync(target).equals(bytes)).toBe(true);
    expect(statSync(target).mode & 0o777).toBe(0o604);
    expect(partials(here)).toEqual([]);
  });

  test.each([
    ['a link', symlinkSync],
    ['another name', linkSync],
  ])('a copy from a host writes nothing into a file that %s leads to', async (_, plant) => {
    const bytes = randomBytes(8 * MIB);
    writeFileSync(join(there, 'file'), bytes);
    const target = join(here, 'copied');
    const args = [`host:there ${tests}/file`, target];
    await killInTheMiddle(args, () => received() > MIB);
    const notes = join(line.home, `notes ${tests}`);
    writeFileSync(notes, 'notes', { mode: 0o600 });
    const [left = ''] = partials(here);
    rmSync(left);
    plant(notes, left);
    await copy(args, 'down');
    expect(readFileSync(notes, 'utf8')).toBe('notes');
    expect(statSync(notes).mode & 0o777).toBe(0o600);
    expect(lstatSync(target).isFile()).toBe(true);
    expect(readFileSync(target).equals(bytes)).toBe(true);
  });

  test('a copy from a host begins again where the file has changed, though not in size', async () => {
    const target = join(here, 'copied');
    const source = join(there, 'file');
    writeFileSync(source, randomBytes(16 * MIB));
    const args = [`host:${source}`, target];
    await killInTheMiddle(args, () => received() > 4 * MIB);
    expect(existsSync(target)).toBe(false);
    const other = randomBytes(16 * MIB);
    writeFileSync(source, other);
    await copy(args, 'down');
    expect(readFileSync(target).equals(other)).toBe(true);
    expect(partials(here)).toEqual([]);
  });

  test('a file that changes while it is copied over a link that is cut is copied as it is then', async () => {
    const target = join(here, 'copied');
    const source = join(there, 'file');
    writeFileSync(source, randomBytes(16 * MIB));
    link.throttle('down', SLOW);
    const { ended } = line.start(['cp', ...login, `host:${source}`, target]);
    await waitFor(() => received() > 4 * MIB, { what: 'some bytes', intervalMs: 5 });
    const other = randomBytes(16 * MIB);
    writeFileSync(source, other);
    link.cut();
    link.throttle('down', Infinity);
    expect((await ended).code).toBe(0);
    expect(readFileSync(target).equals(other)).toBe(true);
    expect(partials(here)).toEqual([]);
  });

  test('a copy to a host that was killed goes on with the pieces that are there', async () => {
    const bytes = randomBytes(40 * MIB + 1);
    const file = join(here, 'file');
    writeFileSync(file, bytes, { mode: 0o640 });
    const target = join(there, `it's "here"`);
    writeFileSync(target, 'as before', { mode: 0o600 });
    const args = [file, `host:${target}`];
    await killInTheMiddle(args, () => pieces() > 1);
    expect(readFileSync(target, 'utf8')).toBe('as before');
    expect(await copy(args, 'up')).toBeLessThan(bytes.length - 15 * MIB);
    expect(readFileSync(target).equals(bytes)).toBe(true);
    expect(statSync(target).mode & 0o777).toBe(0o600);
    expect(partials(there)).toEqual([]);
  });

  test('a copy to a host begins again where the file has changed, and keeps nothing of before', async () => {
    const file = join(here, 'file');
    writeFileSync(file, randomBytes(24 * MIB));
    const args = ['--parents', file, `host:there ${tests}/new/`];
    const folder = join(there, 'new');
    const sent = () => existsSync(folder) && partials(folder).length > 0;
    await killInTheMiddle(args, () => sent() && readdirSync(partials(folder)[0] ?? '').length > 0);
    const other = randomBytes(24 * MIB);
    writeFileSync(file, other);
    await copy(args, 'up');
    expect(readFileSync(join(folder, 'file')).equals(other)).toBe(true);
    expect(readdirSync(folder)).toEqual(['file']);
  });

  test.each([20, 6])(
    'a copy to a host of %i MiB arrives over a link that is cut every 3 MiB',
    async size => {
      const bytes = randomBytes(size * MIB + 1);
      const file = join(here, 'file');
      writeFileSync(file, bytes, { mode: 0o640 });
      link.throttle('up', SLOW);
      const over = new AbortController();
      const cutting = cutAtBytes(3 * MIB, over.signal);
      const { code } = await line.run(['cp', ...login, file, `host:${there}/`]);
      over.abort();
      link.throttle('up', Infinity);
      expect(await cutting).toBeGreaterThan(1);
      expect(code).toBe(0);
      expect(readFileSync(join(there, 'file')).equals(bytes)).toBe(true);
      expect(statSync(join(there, 'file')).mode & 0o777).toBe(0o640);
      expect(partials(there)).toEqual([]);
    },
  );

  test('a piece that is not what was sent is noticed, and the copy begins again', async () => {
    const bytes = randomBytes(24 * MIB);
    const file = join(here, 'file');
    writeFileSync(file, bytes);
    const args = [file, `host:${there}/`];
    await killInTheMiddle(args, () => pieces() > 0);
    const folder = partials(there)[0] ?? '';
    const [piece = ''] = readdirSync(folder).filter(name => /^\d+-\d+$/.test(name));
    chmodSync(join(folder, piece), 0o600);
    writeFileSync(join(folder, piece), randomBytes(8 * MIB));
    await copy(args, 'up');
    expect(readFileSync(join(there, 'file')).equals(bytes)).toBe(true);
    expect(partials(there)).toEqual([]);
  });

  test('two copies of a file to one place at once both arrive', async () => {
    const bytes = randomBytes(24 * MIB);
    const file = join(here, 'file');
    writeFileSync(file, bytes);
    const target = join(there, 'copied');
    const both = [1, 2].map(() => line.run(['cp', ...login, file, `host:${target}`]));
    for (const ended of await Promise.all(both))
      expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(readFileSync(target).equals(bytes)).toBe(true);
    // What the slower one still writes, its end removes.
    expect(partials(there)).toEqual([]);
  });

  test('a copy from a host that is empty by now is empty', async () => {
    const source = join(there, 'file');
    writeFileSync(source, randomBytes(4 * MIB));
    const target = join(here, 'copied');
    const args = [`host:${source}`, target];
    await killInTheMiddle(args, () => received() > 0);
    truncateSync(partials(here)[0] ?? '', 1);
    writeFileSync(source, '');
    await copy(args, 'down');
    expect(readFileSync(target, 'utf8')).toBe('');
    expect(partials(here)).toEqual([]);
  });

  test('a file that is written over while it is copied is copied as it is then', async () => {
    const source = join(there, 'file');
    const [before, after] = ['a', 'b'].map(letter => Buffer.alloc(16 * MIB, letter));
    writeFileSync(source, before ?? '');
    const target = join(here, 'copied');
    link.throttle('down', SLOW);
    const { ended } = line.start(['cp', ...login, `host:${source}`, target]);
    await waitFor(() => received() > 4 * MIB, { what: 'some bytes', intervalMs: 5 });
    writeFileSync(source, after ?? '', { flag: 'r+' });
    link.throttle('down', Infinity);
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
    const found = readFileSync(target);
    expect(found.equals(before ?? found) || found.equals(after ?? found)).toBe(true);
  });

  test('a file that the kernel makes up is copied', async () => {
    await copy(['host:/proc/version', `${here}/`], 'down');
    expect(readFileSync(join(here, 'version'), 'utf8')).toBe(readFileSync('/proc/version', 'utf8'));
  });

  test('a file keeps its name in a folder, and its permissions', async () => {
    const file = join(here, 'file');
    writeFileSync(file, 'small', { mode: 0o640 });
    const home = basename(there);
    for (const target of [there, home, `~/${home}`, `${home}/`]) {
      await copy([file, `host:${target}`], 'up');
      expect(statSync(join(there, 'file')).mode & 0o777).toBe(0o640);
      rmSync(join(there, 'file'));
    }
    // One that is there keeps its own, and the account's umask is for one that is new.
    chmodSync(file, 0o666);
    writeFileSync(join(there, 'file'), 'secret', { mode: 0o600 });
    await copy([file, `host:${there}`], 'up');
    expect(readFileSync(join(there, 'file'), 'utf8')).toBe('small');
    expect(statSync(join(there, 'file')).mode & 0o777).toBe(0o600);
    const { stdout: umask } = await line.run(['run', 'host', ...login, '--', 'umask']);
    await copy([file, `host:${join(there, 'new')}`], 'up');
    expect(statSync(join(there, 'new')).mode & 0o777).toBe(0o666 & ~Number.parseInt(umask, 8));
    for (const mode of [0o600, 0o755]) {
      writeFileSync(join(there, 'back'), 'small');
      chmodSync(join(there, 'back'), mode);
      await copy([`host:${home}/back`, here], 'down');
      expect(statSync(join(here, 'back')).mode & 0o777).toBe(mode);
      // One that is there keeps its own, those that the umask would take too.
      chmodSync(join(here, 'back'), 0o664);
      await copy([`host:${home}/back`, here], 'down');
      expect(statSync(join(here, 'back')).mode & 0o777).toBe(0o664);
      rmSync(join(here, 'back'));
    }
  });

  test('where a file cannot go, it is said', async () => {
    const file = join(here, 'file');
    writeFileSync(file, randomBytes(9 * MIB));
    const fail = async (...args: string[]) =>
      (await line.run(['cp', ...login, ...args])).stderr.replace(/^windlass: /, '');
    expect(await fail(file, `host:${join(there, 'none/file')}`)).toContain('add --parents');
    mkdirSync(join(there, 'taken/file'), { recursive: true });
    expect(await fail(file, `host:${join(there, 'taken')}`)).toBe(
      `${join(there, 'taken/file')} cannot be written: it is a directory. Nothing was changed there.\n`,
    );
    expect(readdirSync(there)).toEqual(['taken']);
    for (const folder of [join(here, 'none'), file])
      expect(await fail('host:/proc/version', `${folder}/`)).toBe(
        `There is no folder ${folder} here. Make it, or add --parents.\n`,
      );
    expect(await fail('host:/proc/version', '/proc/none')).toBe(
      'Nothing can be written to /proc here.\n',
    );
    const args = ['--parents', 'host:/proc/version', join(here, 'new/folder/file')];
    await copy(args, 'down');
  });
});
