import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import ssh2, { type Client, type ConnectConfig } from 'ssh2';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { loadOrCreateKeyPair } from '../../../servers/key-pair.ts';
import { listProcesses } from '../../../servers/processes.ts';
import { startSsh2Server } from '../../../servers/ssh2-server.ts';
import { type Account, makeAccount } from '../clients/accounts.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { startRedis, type TestRedis } from '../servers/redis.ts';
import { describeUnless, missingPrograms, missingRoot } from '../skip.ts';
import { waitFor } from '../wait-for.ts';
import { startTestSshd, type TestSshd } from './sshd.ts';

interface Outcome {
  stdout: Buffer;
  stderr: Buffer;
  code: number | null;
  signal: string | undefined;
}

function login(config: ConnectConfig): Promise<Client> {
  const client = new ssh2.Client();
  return new Promise((settle, reject) => {
    client.once('ready', () => settle(client));
    client.once('error', reject);
    client.connect({ host: '127.0.0.1', ...config });
  });
}

function run(client: Client, command: string): Promise<Outcome> {
  return new Promise((settle, reject) => {
    client.exec(command, (error, channel) => {
      if (error) return reject(error);
      const stdout: Buffer[] = [];
      const stderr: Buffer[] = [];
      let code: number | null = null;
      let signal: string | undefined;
      channel.on('data', (chunk: Buffer) => stdout.push(chunk));
      channel.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
      channel.on('exit', (exitCode: number | null, name?: string) => {
        code = exitCode;
        signal = name;
      });
      channel.on('close', () =>
        settle({ stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), code, signal }),
      );
      channel.end();
    });
  });
}

async function print(client: Client, command: string): Promise<string> {
  const { stdout } = await run(client, command);
  return stdout.toString().trim();
}

describeUnless(missingPrograms('sshd'), 'an sshd for the current user', () => {
  let host: TestSshd;
  beforeAll(async () => {
    host = await startTestSshd({ lines: ['MaxSessions 2'] });
  });
  afterAll(() => host?.stop());

  test('runs commands in a home of its own', async () => {
    const client = await login({ ...host, password: undefined });
    expect(await print(client, 'id -un')).toBe(userInfo().username);
    expect(await print(client, 'pwd; echo "$HOME"')).toBe(`${host.home}\n${host.home}`);
    expect(await print(client, 'touch here && echo "a  b" \'$HOME\'')).toBe('a  b $HOME');
    expect(existsSync(join(host.home, 'here'))).toBe(true);
    expect((await run(client, 'echo oops >&2; exit 7')).code).toBe(7);
    expect(await print(client, 'echo "$SSH_ORIGINAL_COMMAND/$SHLVL"')).toBe('/1');
    client.end();
  });

  test('shows the host key it promises', async () => {
    const seen: Buffer[] = [];
    const hostVerifier = (key: Buffer) => seen.push(key) > 0;
    const client = await login({ ...host, password: undefined, hostVerifier });
    client.end();
    expect(`ssh-ed25519 ${seen[0]?.toString('base64')}`).toBe(host.hostKey);
  });

  test('obeys extra configuration', async () => {
    const client = await login({ ...host, password: undefined });
    const open = () =>
      new Promise((settle, reject) =>
        client.exec('cat', (error, channel) => (error ? reject(error) : settle(channel))),
      );
    await open();
    await open();
    await expect(open()).rejects.toThrow('open failed');
    client.end();
  });

  test('becomes unreachable and comes back on its port with its key; commands live on until stop', async () => {
    const client = await login({ ...host, password: undefined });
    const pid = await print(client, 'setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!');
    const closed = new Promise<void>(settle => client.once('close', () => settle()));
    client.on('error', () => {});
    await host.down();
    await closed;
    await expect(login({ ...host, password: undefined })).rejects.toThrow('ECONNREFUSED');
    await host.up();
    const again = await login({ ...host, password: undefined });
    expect(await print(again, `kill -0 ${pid} && echo alive`)).toBe('alive');

    const cut = new Promise<void>(settle => again.once('close', () => settle()));
    again.on('error', () => {});
    host.disconnect();
    await cut;
    const third = await login({ ...host, password: undefined });
    third.on('error', () => {});
    await host.stop();
    const lives = () => listProcesses().some(entry => entry.pid === Number(pid));
    await waitFor(() => !lives(), { what: 'the command to be ended' });
  });
});

describeUnless(missingRoot() ?? missingPrograms('sshd', 'busybox'), 'throwaway accounts', () => {
  let account: Account;
  let host: TestSshd;
  beforeAll(async () => {
    account = await makeAccount({ shell: 'busybox' });
    host = await startTestSshd({ account });
  });
  afterAll(async () => {
    await host?.stop();
    await account?.remove();
  });

  test('log in by password and by key, with their shell and their home', async () => {
    const { port, username, password, privateKey } = host;
    const byPassword = await login({ port, username, password });
    const words = 'id -un; pwd; readlink /proc/$$/exe; true';
    expect(await print(byPassword, words)).toMatch(`${username}\n${account.home}\n`);
    expect(await print(byPassword, words)).toMatch(/busybox$/);
    byPassword.end();
    const byKey = await login({ port, username, privateKey });
    expect(await print(byKey, 'echo $HOME')).toBe(account.home);
    byKey.end();
    await expect(login({ port, username, password: 'wrong' })).rejects.toThrow('authentication');
  });

  test('are gone with their processes once removed', async () => {
    const other = await makeAccount();
    let isRemoved = false;
    onTestFinished(() => (isRemoved ? undefined : other.remove()));
    const server = await startTestSshd({ account: other });
    const client = await login({ ...server, privateKey: undefined });
    client.on('error', () => {});
    const pid = await print(client, 'setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!');
    await server.stop();
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    await other.remove();
    isRemoved = true;
    expect(existsSync(other.home)).toBe(false);
    expect(await readFile('/etc/passwd', 'utf8')).not.toContain(other.username);
  });
});

describe('the stand-in for sshd', () => {
  test('runs commands and passes on output, exit codes and signals', async () => {
    const directory = makeTempDir('ssh2');
    onTestFinished(() => directory.remove());
    const home = directory.path;
    const hostKey = loadOrCreateKeyPair(join(home, 'host_key'));
    const host = await startSsh2Server({ home, hostKey, log: () => {} });
    onTestFinished(() => host.stop());
    const { port, username, password } = host;
    await expect(login({ port, username, password: 'wrong' })).rejects.toThrow('authentication');
    const client = await login({ port, username, password });
    expect(await print(client, 'pwd')).toBe(home);
    expect((await run(client, 'exit 3')).code).toBe(3);
    expect((await run(client, 'kill -TERM $$')).signal).toMatch(/TERM/);
    const big = await run(client, 'head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2');
    expect([big.stdout.length, big.stderr.length, big.code]).toEqual([20_000_000, 20_000_000, 0]);
    client.end();
  });
});

describeUnless(missingPrograms('redis-server'), 'a Redis', () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  test('is flushed, becomes unreachable and comes back empty on its port', async () => {
    const client = new Redis(redis.url);
    client.on('error', () => {});
    await client.set('a', 'b');
    await redis.flushall();
    expect(await client.get('a')).toBeNull();
    await client.set('a', 'b');
    await redis.down();
    await waitFor(() => client.status !== 'ready', { what: 'the client to notice' });
    await redis.up();
    expect(await client.get('a')).toBeNull();
    client.disconnect();
  });
});

describe('what a test starts', () => {
  test('ends when the test process is killed', async () => {
    const processes = new URL('../../../dist/servers/processes.js', import.meta.url);
    const script = `
      const { spawn } = await import('node:child_process');
      const { endWithThisProcess } = await import('${processes}');
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      endWithThisProcess(child);
      console.log(child.pid);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pid = Number(await new Promise(settle => parent.stdout.once('data', settle)));
    const lives = () => listProcesses().some(entry => entry.pid === pid);
    expect(lives()).toBe(true);
    parent.kill('SIGKILL');
    await waitFor(() => !lives(), { what: 'the child to be ended' });
  });
});
