import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import {
  type CommandLine,
  interruptUntilEnded,
  startCommandLine,
} from '../harness/clients/command-line.ts';
import { readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd', 'script'), 'the command line', form => {
  const { stack, sshd, client } = useRemoteStack(form, { alone: 'its API is killed' });
  let link: TcpProxy;
  const proxy = useStarted(async () => {
    const { hostname, port } = new URL(stack.url);
    link = await startTcpProxy({ host: hostname, port: Number(port) });
    return link;
  });
  const line = useStarted(startCommandLine);
  const start: CommandLine['start'] = (...given) => line.start(...given);
  const windlass: CommandLine['run'] = (...given) => line.run(...given);
  const run = (command: string, ...options: string[]) =>
    windlass(['run', 'host', ...options, '--', command]);

  let url: string;

  beforeAll(async () => {
    url = `http://127.0.0.1:${proxy.port}`;
    const { username, password } = stack;
    const args = ['login', `${url}/`, '--user', username, '--password-stdin'];
    const { code, stdout, stderr } = await windlass(args, { input: `${password}\n` });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`Logged in to ${url} as ${username}`);
  });

  test('a login keeps a token, which nobody else can read, and not the password', async () => {
    const path = join(line.home, '.config/windlass/login.json');
    const kept = readFileSync(path, 'utf8');
    expect(JSON.parse(kept)).toMatchObject({ url, username: stack.username });
    expect(kept).not.toContain(stack.password);
    expect([statSync(path).mode & 0o777, statSync(join(path, '..')).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
  });

  test('a first command opens the session on the terminal, with a key that has a passphrase', async () => {
    const key = join(line.home, 'key');
    writeFileSync(key, `${sshd.privateKey.trimEnd()}\n`, { mode: 0o600 });
    const { status } = spawnSync('ssh-keygen', ['-pq', '-P', '', '-N', 'of the key', '-f', key]);
    expect(status).toBe(0);
    const { child, said, ended } = line.startOnTerminal(
      `run host --user ${sshd.username} --key ${key} -- 'echo it runs; exit 3'`,
    );
    await waitFor(() => said.stdout.includes('Passphrase of'), { what: 'the question' });
    child.stdin?.write('of the key\n');
    const { code, stdout } = await ended;
    expect(code).toBe(3);
    expect(stdout).toContain('it runs');
    expect(stdout).not.toContain('of the key');
  });

  test('where there is no terminal to ask on, what to give instead is said', async () => {
    const { code, stderr } = await windlass(['run', 'host', '--user', 'other', '--', 'true']);
    expect(code).toBe(255);
    expect(stderr).toBe(
      'windlass: There is no terminal to ask on. Give --key FILE, or open the session in a terminal first.\n',
    );
  });

  test('both streams come out as they are, byte by byte, with the exit status', async () => {
    const { code, stdout, stderr } = await run(
      `printf 'a\\000b'; echo to stderr >&2; printf end; exit 42`,
    );
    expect({ code, stdout, stderr }).toEqual({
      code: 42,
      stdout: 'a\0bend',
      stderr: 'to stderr\n',
    });
  });

  test('folder, environment, limit and standard input reach the command', async () => {
    const options = ['--cwd', '/tmp', '--env', 'WORD=a b', '--env', 'FROM_HERE', '--timeout', '60'];
    const { code, stdout } = await windlass(
      ['run', 'host', ...options, '--', 'pwd; echo "$WORD, $FROM_HERE"; cat'],
      { input: 'eins\nzwei ä\n', env: { FROM_HERE: 'given' } },
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: '/tmp\na b, given\neins\nzwei ä\n' });
    const late = await run('echo begun; sleep 600', '--timeout', '1');
    expect([late.code, late.stdout]).toEqual([255, 'begun\n']);
    expect(late.stderr).toMatch(/^windlass: .*time.*\n$/);
  });

  test('no output is lost nor doubled where the network is cut and the API is killed', async () => {
    const { said, ended } = start(
      ['run', 'host', '--', 'for n in $(seq 300); do echo "line $n"; sleep 0.02; done; exit 5'],
      {},
    );
    for (const n of [20, 60, 100]) {
      await waitFor(() => said.stdout.includes(`line ${n}\n`), { what: `line ${n}` });
      link.cut();
    }
    stack.kill('windlass-api');
    const { code, stdout } = await ended;
    expect(code).toBe(5);
    expect(stdout).toBe(Array.from({ length: 300 }, (_, n) => `line ${n + 1}\n`).join(''));
  });

  test('a detached command is followed, listed, awaited and cancelled by its id', async () => {
    const { stdout } = await run('echo one; until test -e go; do sleep 0.1; done; exit 6', '-d');
    const id = stdout.trim();
    expect(id).toMatch(/^[0-9a-z]{26}$/);
    const follower = start(['logs', '-f', id], {});
    const waiter = start(['wait', id], {});
    await waitFor(() => follower.said.stdout === 'one\n', { what: 'the first line' });
    expect(await windlass(['logs', id])).toEqual({ code: 0, stdout: 'one\n', stderr: '' });
    expect(JSON.parse((await windlass(['logs', id, '--json'])).stdout)).toEqual({
      stream: 'stdout',
      text: 'one',
    });
    const table = await windlass(['jobs', '--state', 'running']);
    expect(table.stdout).toMatch(/^ID +STATE +KIND +HOST +AGE +WHAT\n/);
    expect(table.stdout).toMatch(
      new RegExp(`^${id} +running +command +host +\\d+s +echo one`, 'm'),
    );
    const listed = await windlass(['jobs', '--state', 'running', '--json']);
    expect(JSON.parse(listed.stdout.split('\n')[0] ?? '')).toMatchObject({ id, kind: 'command' });
    await run('touch go');
    expect((await follower.ended).code).toBe(6);
    expect((await waiter.ended).code).toBe(6);
    expect(await windlass(['cancel', id])).toEqual({
      code: 0,
      stdout: `${id} had ended before.\n`,
      stderr: '',
    });
    await run('rm go');
  });

  test.each([
    ['Ctrl-C', 'SIGINT', 130],
    ['a request to end', 'SIGTERM', 143],
  ] as const)('%s cancels the command', async (_what, signal, status) => {
    const name = `cancelled by ${signal}`;
    const { child, said, ended } = start(
      ['run', 'host', '--name', name, '--', 'echo begun; sleep 600'],
      {},
    );
    await waitFor(() => said.stdout === 'begun\n', { what: 'the output' });
    child.kill(signal);
    const { items } = await client.get<{ items: { id: string }[] }>(
      `/api/jobs?name=${encodeURIComponent(name)}`,
    );
    expect(await ended).toEqual({
      code: status,
      stdout: 'begun\n',
      stderr: `windlass: cancelling job ${items[0]?.id} …\n`,
    });
    const { items: after } = await client.get<{ items: { state: string }[] }>(
      `/api/jobs?name=${encodeURIComponent(name)}`,
    );
    expect(after.map(({ state }) => state)).toEqual(['cancelled']);
  });

  test('Ctrl-C cancels the command of a service that is just unreachable', async () => {
    const name = 'cancelled later';
    const { child, said, ended } = start(
      ['run', 'host', '--name', name, '--', 'echo begun; sleep 600'],
      {},
    );
    await waitFor(() => said.stdout === 'begun\n', { what: 'the output' });
    stack.kill('windlass-api');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stdout: 'begun\n' });
    const { items } = await client.get<{ items: { state: string }[] }>(
      `/api/jobs?name=${encodeURIComponent(name)}`,
    );
    expect(items.map(({ state }) => state)).toEqual(['cancelled']);
  });

  test('a second Ctrl-C leaves the job to itself, and says which', async () => {
    const command = ['--', 'echo begun; sleep 600'];
    const { child, said, ended } = start(['run', 'host', ...command], {});
    await waitFor(() => said.stdout === 'begun\n', { what: 'the output' });
    const { items } = await client.get<{ items: { id: string }[] }>('/api/jobs?state=running');
    stack.kill('windlass-api', 'SIGSTOP');
    try {
      await interruptUntilEnded({ child, ended });
    } finally {
      stack.kill('windlass-api', 'SIGCONT');
    }
    const [id] = items.map(job => job.id);
    expect(await ended).toMatchObject({
      code: 130,
      stderr: `windlass: cancelling job ${id} …\nwindlass: the job ${id} may go on: windlass cancel ${id}\n`,
    });
    await windlass(['cancel', id ?? '']);
  });

  test('output that a disk takes only in part, or not at all, is a fault', async () => {
    const fault = /^windlass: the output cannot be written: (ENOSPC|EFBIG): .*\.\n$/;
    const print = "windlass run host -n -- 'seq 100000; sleep 600'";
    for (const [text, code] of [
      ['windlass jobs >/dev/full', 1],
      ['windlass jobs --json >/dev/full', 1],
      [`${print} >/dev/full`, 255],
      ['windlass run host -n -- seq 100000 >/dev/full', 255],
      ['windlass run host -n --json -- true >/dev/full', 255],
      [`(ulimit -f 100; ${print} >part)`, 255],
    ] as const)
      expect([text, await line.runInShell(text)]).toEqual([
        text,
        { code, stdout: '', stderr: expect.stringMatching(fault) },
      ]);
  });

  test('a reader that has its first line ends what goes on', async () => {
    const id = (await run('while sleep 0.1; do echo line; done', '-d')).stdout.trim();
    const status = '; echo $PIPESTATUS';
    for (const text of [
      'jobs --watch',
      'jobs --watch --json',
      `logs -f ${id}`,
      `logs -f --json ${id}`,
    ])
      expect([
        text,
        await line.runInShell(`windlass ${text} | head -1 >/dev/null${status}`),
      ]).toEqual([text, { code: 0, stdout: '141\n', stderr: '' }]);
    await windlass(['cancel', id]);
  });

  test('long output for a slow reader comes without a warning', async () => {
    const { stdout, stderr } = await line.runInShell(
      `windlass run host -n -- 'head -c 20000000 /dev/zero | tr "\\0" x' | (sleep 1; wc -c)`,
    );
    expect({ bytes: Number(stdout), stderr }).toEqual({ bytes: 20_000_000, stderr: '' });
  });

  test('who gives no standard input is told that it is waited for', async () => {
    const { child, said, ended } = start(['run', 'host', '--', 'cat; echo end'], { input: '' });
    await waitFor(() => said.stderr !== '', { what: 'a word' });
    child.stdin?.end();
    expect(await ended).toEqual({
      code: 0,
      stdout: 'end\n',
      stderr: 'windlass: this waits for the end of standard input. Add -n if there is none.\n',
    });
  });

  test('a reader that leaves ends the command', async () => {
    const { child, said, ended } = start(['run', 'host', '--', 'yes'], {});
    await waitFor(() => said.stdout.length > 0, { what: 'output' });
    child.stdout?.destroy();
    expect((await ended).code).toBe(141);
  });

  test('a reader that leaves is not kept until the command has ended', async () => {
    const name = 'for a reader that leaves';
    const words = ['run', 'host', '--name', name, '--', 'seq 1000000; sleep 600'];
    const { child, ended } = start(words, {});
    child.stdout?.pause();
    const query = `/api/jobs?name=${encodeURIComponent(name)}`;
    const find = async () => (await client.get<{ items: { id: string }[] }>(query)).items[0];
    const { id } = await waitFor(find, { what: 'the job' });
    // More than a pipe takes: the command line is writing when its reader leaves.
    const isLong = async () => (await readOutput(client, id)).length > 1 << 20;
    await waitFor(isLong, { what: 'long output' });
    stack.kill('windlass-worker', 'SIGSTOP');
    try {
      child.stdout?.destroy();
      await waitFor(() => child.exitCode !== null, { what: 'the command line to end' });
    } finally {
      stack.kill('windlass-worker', 'SIGCONT');
    }
    expect(await ended).toMatchObject({ code: 141, stderr: '' });
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
  });

  test('JSON has the lines and the record', async () => {
    const { stdout } = await run('echo one; exit 2', '--json');
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    expect(lines).toMatchObject([
      { stream: 'stdout', text: 'one' },
      { state: 'succeeded', result: { returncode: 2 } },
    ]);
  });

  test('a script that is not text in UTF-8 is refused: another program would run', async () => {
    const script = join(line.home, 'latin-1.sh');
    writeFileSync(script, Buffer.from('#!/bin/sh\ncd caf\xe9 && rm -rf *\n', 'latin1'));
    const name = 'not in UTF-8';
    expect(await windlass(['batch', 'host', '--name', name, '--script', script])).toEqual({
      code: 255,
      stdout: '',
      stderr: `windlass: The script ${script} is not text in UTF-8. Copy it to the host, and submit a command that runs it.\n`,
    });
    const { items } = await client.get<{ items: object[] }>(
      `/api/jobs?name=${encodeURIComponent(name)}`,
    );
    expect(items).toEqual([]);
  });

  test('what is wrong is one line with the next step', async () => {
    expect(
      await windlass(['run', 'host', '--user', 'x', '--key', join(line.home, 'none'), 'true']),
    ).toMatchObject({
      code: 255,
      stderr: `windlass: The key ${line.home}/none cannot be read: no such file or directory. Check --key.\n`,
    });
    expect(await windlass(['run', 'nowhere', '--user', 'x', 'true'])).toMatchObject({
      code: 255,
      stderr: 'windlass: There is no host nowhere. See: windlass host list.\n',
    });
    expect(await windlass(['run', 'hots', '--user', 'x', 'true'])).toMatchObject({
      code: 255,
      stderr: 'windlass: There is no host hots. Did you mean host?\n',
    });
    expect(
      await windlass(['jobs'], { env: { WINDLASS_URL: url, WINDLASS_TOKEN: 'two\nlines' } }),
    ).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^windlass: The token has a character .*\.\n$/),
    });
    const wrong = ['login', url, '--user', stack.username, '--password-stdin'];
    expect((await windlass(wrong, { input: 'wrong' })).stderr).toBe(
      'windlass: Credentials required: the user name or password is wrong.\n',
    );
    expect(await windlass(['jbs'])).toMatchObject({
      code: 1,
      stderr: `windlass: unknown command 'jbs'\n(Did you mean jobs?)\nAdd --help to see how.\n`,
    });
    expect(await windlass(['jobs', '--limit', '0'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('It must be at least 1.'),
    });
    expect(await windlass(['jobs', '--state', 'done'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^windlass: option '--state <state>' .* queued, running, /),
    });
    expect(await windlass(['jobs', '--kind', 'done'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^windlass: Invalid parameters: kind.*"command".*\n$/),
    });
    expect(
      await windlass(['jobs'], { env: { WINDLASS_URL: url, WINDLASS_TOKEN: 'wrong' } }),
    ).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Log in again: windlass login URL.'),
    });
    // It may be of another service than the one that is remembered.
    expect(await windlass(['jobs'], { env: { WINDLASS_TOKEN: 'wrong' } })).toMatchObject({
      code: 1,
      stderr:
        'windlass: WINDLASS_TOKEN is set without WINDLASS_URL, which says to whom it is sent. Set both, or neither.\n',
    });
    const elsewhere = { WINDLASS_URL: 'http://127.0.0.1:1' };
    expect(await windlass(['jobs'], { env: elsewhere })).toMatchObject({
      code: 1,
      stderr:
        'windlass: There is no login for http://127.0.0.1:1. Run: windlass login http://127.0.0.1:1\n',
    });
    expect((await windlass(['login', 'windlass.example.org'])).stderr).toBe(
      'windlass: windlass.example.org is no address of a service. Give it as https://windlass.example.org.\n',
    );
  });

  test('every command has its help, with an example', async () => {
    const { stdout } = await windlass(['--help']);
    const names = [...stdout.matchAll(/^ {2}(\w+) .*(?:<|\[options\])/gm)].map(([, name]) => name);
    expect(names).toContain('run');
    for (const name of ['login', 'logout', 'run', 'jobs', 'logs', 'wait', 'cancel'])
      expect((await windlass([name, '--help'])).stdout).toContain(`Example:\n  windlass ${name}`);
  });

  test('a login ends the token of the one before, and its own where it cannot be kept', async () => {
    const tokens = async () =>
      (await client.get<{ items: unknown[] }>('/api/users/-/tokens')).items.length;
    const login = (XDG_CONFIG_HOME: string) =>
      windlass(['login', url, '--user', stack.username, '--password-stdin'], {
        env: { XDG_CONFIG_HOME },
        input: stack.password,
      });
    const before = await tokens();
    for (const _ of [1, 2]) expect((await login(join(line.home, 'again'))).code).toBe(0);
    expect(await tokens()).toBe(before + 1);
    writeFileSync(join(line.home, 'file'), '');
    expect(await login(join(line.home, 'file'))).toMatchObject({ code: 1 });
    expect(await tokens()).toBe(before + 1);
  });

  test('a logout ends the token', async () => {
    const env = { XDG_CONFIG_HOME: join(line.home, 'other') };
    const login = ['login', url, '--user', stack.username, '--password-stdin'];
    await windlass(login, { env, input: stack.password });
    const { token } = JSON.parse(
      readFileSync(join(env.XDG_CONFIG_HOME, 'windlass/login.json'), 'utf8'),
    );
    const mine = () =>
      fetch(`${stack.url}/api/users/-`, { headers: { Authorization: `Bearer ${token}` } });
    expect((await mine()).status).toBe(200);
    const logout = ['logout', '--password-stdin', '--json'];
    const { code, stdout } = await windlass(logout, { env, input: stack.password });
    expect({ code, ...JSON.parse(stdout) }).toEqual({
      code: 0,
      url,
      username: stack.username,
      loggedOut: true,
      revoked: true,
    });
    expect((await mine()).status).toBe(401);
    expect((await windlass(['jobs'], { env })).stderr).toContain('You are not logged in.');
  });

  test('a logout works where the token was ended elsewhere', async () => {
    const env = { XDG_CONFIG_HOME: join(line.home, 'ended') };
    const login = ['login', url, '--user', stack.username, '--password-stdin'];
    await windlass(login, { env, input: stack.password });
    const path = join(env.XDG_CONFIG_HOME, 'windlass/login.json');
    const { tokenId } = JSON.parse(readFileSync(path, 'utf8'));
    const Authorization = `Basic ${btoa(`${stack.username}:${stack.password}`)}`;
    await fetch(`${stack.url}/api/users/-/tokens/${tokenId}`, {
      method: 'DELETE',
      headers: { Authorization },
    });
    const { code } = await windlass(['logout', '--password-stdin'], { env, input: stack.password });
    expect([code, existsSync(path)]).toEqual([0, false]);
  });
});
