import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { RELEASE } from '../../shared/process/release.ts';
import { startCommandLine } from '../harness/clients/command-line.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd', 'script'), 'what the command line says', form => {
  const { stack, sshd, client } = useRemoteStack(form);
  let link: TcpProxy;
  useStarted(async () => {
    const { hostname, port } = new URL(stack.url);
    link = await startTcpProxy({ host: hostname, port: Number(port) });
    return link;
  });
  const line = useStarted(startCommandLine);
  let url: string;

  const logIn = (env: Record<string, string> = {}) =>
    line.run(['login', url, '--user', stack.username, '--password-stdin'], {
      env,
      input: stack.password,
    });
  const profileIn = (folder: string) => join(folder, 'windlass/login.json');
  /** Another user of the command, who is logged in. */
  async function startOther(name: string) {
    const env = { XDG_CONFIG_HOME: join(line.home, name) };
    expect((await logIn(env)).code).toBe(0);
    const path = profileIn(env.XDG_CONFIG_HOME);
    return { env, path, profile: JSON.parse(readFileSync(path, 'utf8')) };
  }
  /** What is said of a command that fails. */
  async function say(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await line.run(args);
    expect({ stdout, stderr }).toEqual({
      stdout: '',
      stderr: expect.stringMatching(/^windlass: [^\n]*\n$/),
    });
    expect(code).not.toBe(0);
    return stderr.replace(/^windlass: /, '').trimEnd();
  }

  beforeAll(async () => {
    url = `http://127.0.0.1:${link.port}`;
    expect((await logIn()).code).toBe(0);
    writeFileSync(join(line.home, 'key'), sshd.privateKey, { mode: 0o600 });
    const login = ['--user', sshd.username, '--key', 'key'];
    expect((await line.run(['run', 'host', ...login, '--', 'true'])).code).toBe(0);
  });

  test('a token that ends under way leaves the id of the job', async () => {
    const { env, profile } = await startOther('ended');
    const command = 'echo begun; until test -e go; do sleep 0.1; done';
    const { said, ended } = line.start(['run', 'host', '-n', '--', command], { env });
    await waitFor(() => said.stdout === 'begun\n', { what: 'the output' });
    const { items } = await client.get<{ items: { id: string }[] }>('/api/jobs?state=running');
    await client.delete(`/api/users/-/tokens/${profile.tokenId}`);
    link.cut();
    const { code, stderr } = await ended;
    expect([code, stderr]).toEqual([
      255,
      expect.stringContaining(
        `windlass: the job ${items[0]?.id} may go on: windlass logs -f ${items[0]?.id}\n`,
      ),
    ]);
    await line.run(['cancel', items[0]?.id ?? '']);
  });

  test('a logout that cannot end the token fails, and keeps the login', async () => {
    const { env, path } = await startOther('kept');
    const failing = [
      { args: ['--password-stdin', '--json'], says: 'password is wrong' },
      { args: [], says: 'There is no terminal' },
    ];
    for (const { args, says } of failing) {
      const { code, stdout, stderr } = await line.run(['logout', ...args], { env, input: 'wrong' });
      expect([code, stdout, existsSync(path)]).toEqual([1, '', true]);
      expect(stderr).toContain(says);
      expect(stderr).toContain('windlass logout --local');
    }
    expect((await line.run(['jobs'], { env })).code).toBe(0);
  });

  test("a logout forgets a token of the user's own, and says that it was not ended", async () => {
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
      name: 'own',
      scope: 'write',
    });
    const env = { XDG_CONFIG_HOME: join(line.home, 'own') };
    await line.run(['login', url, '--token-stdin'], { env, input: token });
    const { code, stdout, stderr } = await line.run(['logout', '--json'], { env });
    expect([code, existsSync(profileIn(env.XDG_CONFIG_HOME))]).toEqual([0, false]);
    expect(JSON.parse(stdout)).toMatchObject({ loggedOut: true, revoked: false });
    expect(stderr).toContain('/console/');
  });

  test('a logout of this machine alone asks for nothing', async () => {
    const { env, path } = await startOther('alone');
    const { code, stderr } = await line.run(['logout', '--local'], { env });
    expect([code, existsSync(path)]).toEqual([0, false]);
    expect(stderr).toContain('windlass token delete');
  });

  test('Ctrl-C at a question is an interrupt, and no sentence', async () => {
    const { child, said, ended } = line.startOnTerminal(`login ${url} --user somebody`);
    await waitFor(() => said.stdout.includes('Password of'), { what: 'the question' });
    child.stdin?.write('\x03');
    const { code, stdout } = await ended;
    expect([code, stdout.trimEnd()]).toEqual([130, 'Password of somebody:']);
  });

  test('what is wrong with what was given is said in words', async () => {
    expect(await say('run', 'host', '-n', '--', '')).toBe(
      'The command is empty. Give it after the host: windlass run host -- uname -a.',
    );
    expect(await say('run', 'host', '-n', '--cwd', '', '--', 'true')).toContain(
      'cwd: must not be empty.',
    );
    expect(await say('run', 'host', '-n', '--timeout', '99999999', '--', 'true')).toMatch(
      /timeout: must be at most \d+\b/,
    );
    writeFileSync(join(line.home, 'id.pub'), 'ssh-ed25519 AAAA ada\n');
    expect(await say('run', 'host', '-n', '--user', 'x', '--key', 'id.pub', '--', 'true')).toBe(
      'id.pub holds a public key. Give the private one: --key id.',
    );
    expect(await say('run', `${sshd.username}@lab`, '--', 'true')).toBe(
      `There is no host ${sshd.username}@lab. Say as whom by an option: lab --user ${sshd.username}.`,
    );
  });

  test('what is not there is named with the command that lists what is', async () => {
    const made = await line.run(['project', 'create', 'Hints']);
    const model = (await line.run(['model', 'create', made.stdout.trim(), 'm'])).stdout.trim();
    expect(await say('wait', 'none')).toMatch(/ See: windlass jobs\.$/);
    expect(await say('model', 'list', 'none')).toMatch(/ See: windlass project list\.$/);
    expect(await say('model', 'show', 'none')).toMatch(/ See: windlass model list PROJECT\.$/);
    expect(await say('rows', model, 'none')).toMatch(/ See: windlass model show MODEL\.$/);
    const file = join(line.home, 'hints.csv');
    writeFileSync(file, 'a\n1\n');
    await line.run(['upload', file, '--model', model, '--parser', 'blob', '--aid', 'kept']);
    expect(await say('rows', model, 'kept')).toMatch(
      / upload it again with a parser, such as --parser csv\.$/,
    );
    expect(await say('upload', file, '--resume', 'none')).toMatch(
      / Begin another: windlass upload FILE --model MODEL\.$/,
    );
    const codec = ['video', 'host', '-o', 'x.webm', '--codec', 'h264', `${sshd.home}/*.png`];
    writeFileSync(join(sshd.home, 'one.png'), '');
    expect(await say(...codec)).toMatch(
      / Use --codec vp9 or av1, or another ending of the file: \.mp4 or \.webm\.$/,
    );
  });

  test('what is wrong with a file here is said', async () => {
    mkdirSync(join(line.home, 'folder'));
    writeFileSync(join(line.home, 'file'), 'x');
    writeFileSync(join(sshd.home, 'there'), 'x');
    const { stdout: project } = await line.run(['project', 'create', 'Files']);
    const { stdout: model } = await line.run(['model', 'create', project.trim(), 'm']);
    expect(await say('upload', 'typo.csv', '--model', model.trim())).toBe(
      'typo.csv cannot be read: no such file or directory.',
    );
    expect(await say('cp', 'typo.txt', 'host:')).toBe(
      'typo.txt cannot be read: no such file or directory.',
    );
    expect(await say('cp', 'folder', 'host:')).toBe(
      'folder is a folder. Give one file: tar packs a folder into one.',
    );
    expect(await say('cp', 'host:', '.')).toBe(
      'host: is a folder. Give one file: tar packs a folder into one.',
    );
    expect(await say('cp', 'host:there', 'file/x')).toBe(
      'There is no folder file here. Make it, or add --parents.',
    );
    expect(await say('cp', 'host:there', '/proc/x')).toBe('Nothing can be written to /proc here.');
    expect(await say('cp', 'host:there', 'other:there')).toBe(
      'Both are on hosts. Copy it here first, then to the other.',
    );
    expect(await say('cp', 'file', 'there')).toBe(
      'One of the two must be on a host. Name it as HOST:PATH.',
    );
    expect(await say('video', 'host', '-o', 'nowhere/x.mp4', '*.png')).toBe(
      'There is no folder nowhere here. Make it first.',
    );
  });

  test('what another program answers in place of the service is no answer, and gets nothing', async () => {
    const asked: string[] = [];
    const other = createServer(async (req, res) => {
      let body = '';
      for await (const piece of req.setEncoding('utf8')) body += piece;
      asked.push(`${req.method} ${req.headers.authorization} ${body}`);
      const answer = { username: 'eve', id: 't', token: 'foreign', sid: 's' };
      res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const away = `http://localhost:${(other.address() as AddressInfo).port}`;
    const redirect = createServer((req, res) => {
      // A proxy that passes GETs on, or passes on nothing.
      const answer = req.url?.startsWith('/empty/') ? {} : { username: 'ada' };
      if (req.url?.endsWith('/api/users/-'))
        res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
      else res.writeHead(307, { Location: `${away}${req.url}` }).end();
    }).listen(0, '127.0.0.1');
    await once(redirect, 'listening');
    const here = `http://127.0.0.1:${(redirect.address() as AddressInfo).port}`;
    const env = { XDG_CONFIG_HOME: join(line.home, 'redirected') };
    const sayOf = async (args: string[], more: Record<string, string> = {}) => {
      const { code, stderr } = await line.run(args, { env: { ...env, ...more }, input: 'secret' });
      expect(code).not.toBe(0);
      return stderr;
    };
    const told = (path: string) =>
      `windlass: What answers at ${here} is not Windlass. It says to ask ${away}${path} instead. Is the address right, and no proxy before it that asks for a login?\n`;
    const run = ['run', 'lab', '--user', 'x', '--key', join(line.home, 'key'), '--', 'true'];
    try {
      const login = (at: string) => ['login', at, '--user', 'ada', '--password-stdin'];
      expect(await sayOf(login(here))).toBe(told('/api/users/-/tokens'));
      expect(await sayOf(run, { WINDLASS_URL: here, WINDLASS_TOKEN: 't' })).toMatch(
        new RegExp(`^windlass: What answers at ${here} is not Windlass\\.[^\\n]*\\n$`),
      );
      expect(asked.filter(one => one !== 'GET undefined ')).toEqual([]);
      const nobody = /^windlass: What answers there is not Windlass\.[^\n]*\n$/;
      expect(await sayOf(run, { WINDLASS_URL: away, WINDLASS_TOKEN: 't' })).toMatch(nobody);
      expect(await sayOf(login(`${here}/empty`))).toMatch(nobody);
      expect(existsSync(profileIn(env.XDG_CONFIG_HOME))).toBe(false);
    } finally {
      for (const server of [other, redirect]) server.close().closeAllConnections();
    }
  });

  test('the doctor prints the words of a service so that they move no cursor', async () => {
    const odd = createServer((req, res) => {
      const isReadiness = req.url === '/readyz';
      const answer = {
        checks: { 'data\u001b[2J': '\u001b]0;x\u0007\n\u202eok' },
        degraded: [],
        workers: 1,
      };
      res.writeHead(isReadiness ? 503 : 200, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify(isReadiness ? answer : {}));
    }).listen(0, '127.0.0.1');
    await once(odd, 'listening');
    const at = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`;
    try {
      const env = { WINDLASS_URL: at, WINDLASS_TOKEN: 't' };
      expect((await line.run(['doctor'], { env })).stdout).toContain(
        '\nBAD  data\ufffd[2J: \ufffd]0;x\ufffd\ufffd\ufffdok\n',
      );
    } finally {
      odd.close();
    }
  });

  test('the release is told, of both sides by doctor', async () => {
    for (const words of [['--version'], ['version']])
      expect(await line.run(words)).toEqual({ code: 0, stdout: `${RELEASE}\n`, stderr: '' });
    expect((await line.run(['doctor'])).stdout).toContain(
      `ok   release ${RELEASE} (this program: ${RELEASE})\n`,
    );
  });
});
