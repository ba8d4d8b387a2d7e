import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { SETTINGS } from '../../shared/settings/settings.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase, readSettings, stackRoles } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { type RunningProgram, startProgram } from '../harness/run-program.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { findFreePorts, type Stack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const SECRET_SETTINGS = ['ADMIN_PASSWORD', 'SECRET_KEY', 'S3_SECRET_KEY', 'SEAL_PRIVATE_KEYS'];

describeForms(missingPrograms('sshd'), 'what the logs hold at LOG_LEVEL=trace', form => {
  const directory = makeTempDir('logs');
  const secrets = new Map<string, string>();
  const programs: RunningProgram[] = [];
  let printed = '';
  let stack: Stack;
  let sshd: TestSshd;
  let client: Client;
  let settings: Record<string, string>;

  /** A secret of its own, which is looked for in the end. */
  function secret(name: string, odd = '"\\é'): string {
    const text = `${name}-Zq7${odd}-${Math.random().toString(36).slice(2)}`;
    secrets.set(name, text);
    return text;
  }
  /** One that may stand in a URL and in a header as it is. */
  const plainSecret = (name: string) => secret(name, '');

  beforeAll(async () => {
    [stack, sshd] = await Promise.all([
      form.start({ env: { LOG_LEVEL: 'trace', SESSION_IDLE_TIMEOUT: '900' } }),
      startTestSshd(),
    ]);
    client = connectClient(stack);
    settings = await readSettings(stack);
    for (const name of SECRET_SETTINGS) {
      const value = settings[name];
      if (value) secrets.set(name, value);
    }
    secrets.set('DATABASE_URL', new URL(settings.DATABASE_URL ?? '').password);
    if (form.name === 'embedded')
      for (const [role, url] of Object.entries(await stackRoles(stack)))
        secrets.set(`the password of ${role}`, new URL(url).password);
  });
  afterAll(async () => {
    for (const { child } of programs) child.kill('SIGKILL');
    await stack?.stop();
    await sshd?.stop();
    directory.remove();
  });

  /** Starts a process of the service with the stack's settings and these, and waits for what it says. */
  async function startBeside(args: string[], own: Record<string, string>, until: RegExp) {
    const given = Object.fromEntries(
      Object.entries(settings).filter(([name]) => Object.hasOwn(SETTINGS, name)),
    );
    const program = startProgram({
      args,
      cwd: directory.path,
      settings: { ...given, PORT: String(await findFreePorts(2)), LOG_LEVEL: 'trace', ...own },
    });
    programs.push(program);
    let text = '';
    for (const stream of [program.child.stdout, program.child.stderr]) {
      stream?.on('data', piece => {
        text += piece;
        printed += piece;
      });
    }
    await waitFor(() => until.test(text), {
      what: `${args.join(' ')} to print ${until}`,
      timeoutMs: 60_000,
    }).catch((cause: unknown) => {
      throw new Error(`It printed:\n${text.replace(/^/gm, '| ')}`, { cause });
    });
    return program;
  }

  test('logins, right and wrong ones', async () => {
    const password = secret('user-password');
    await client.post('/api/users', { username: 'person', password });
    const person = new Client(stack.url, 'person', password);
    await person.get('/api/users/-');
    secrets.set('basic', Buffer.from(`person:${password}`).toString('base64'));
    const wrong = new Client(stack.url, 'person', secret('wrong-password'));
    await expectProblem(await wrong.fetch('/api/users/-'), 401, 'unauthorized');
    await client.fetch('/api/users/person', {
      method: 'PUT',
      body: JSON.stringify({ password: secret('new-password') }),
    });
    for (const [path, body] of [
      ['/api/login', JSON.stringify({ username: 'person', password: secret('login-password') })],
      ['/api/login', `{"password": "${secret('broken-body')}`],
      ['/api/users', JSON.stringify({ username: 'other', password: [secret('no-password')] })],
      [
        '/api/users',
        JSON.stringify({ username: 'o', password: secret('extra'), [secret('field')]: 1 }),
      ],
    ] as const)
      expect((await client.fetch(path, { method: 'POST', body })).ok).toBe(false);
    const headers = {
      Authorization: `Bearer wdl_${plainSecret('bearer')}`,
    };
    expect((await fetch(`${stack.url}/api/users/-`, { headers })).status).toBe(401);
    const cookie = { Cookie: `serviceauth=${encodeURIComponent(secret('cookie'))}` };
    expect((await fetch(`${stack.url}/api/users/-`, { headers: cookie })).status).toBe(401);
  });

  test('links, of which one is asked for something else', async () => {
    const path = '/api/users/-';
    const { url } = await client.post<{ url: string }>('/api/links', { path });
    const { search } = new URL(url);
    secrets.set('link', search.slice('?link='.length));
    secrets.set('the MAC of a link', search.split('.').at(-1) ?? '');
    expect((await fetch(url)).status).toBe(200);
    for (const wrong of [
      '/api/jobs',
      '/nowhere',
      '/api/login',
      '/api/events/opened',
      '/admin/queues',
    ])
      expect((await fetch(stack.url + wrong + search)).ok).toBe(false);
    // A page that tells of its own address.
    const method = 'POST';
    const told = await client.fetch(`/api/events/opened/${search.slice(1)}${search}`, { method });
    expect(told.status).toBe(204);
    expect((await client.fetch(`/api/projects${search}`, { method, body: '{}' })).status).toBe(400);
  });

  test('a webhook, whose name leads nowhere', async () => {
    const url = 'https://receiver.invalid/hook';
    const made = await client.post<{ secret: string }>('/api/webhooks', { url });
    secrets.set('webhook', made.secret.replace('whsec_', ''));
    const told = await client.fetch(`/api/events/${made.secret}`, { method: 'GET' });
    expect(told.status).toBe(405);
  });

  test('sessions on a host, with credentials that it takes and that it does not', async () => {
    await addHost(client, sshd);
    secrets.set('private-key', sshd.privateKey.split('\n').slice(1, 3).join('\n'));
    const sid = await openSession(client, sshd);
    await waitForEnd(client, (await launchAsync(client, sid, 'true')).id);
    const other = loadOrCreateKeyPair(join(directory.path, 'other_key'));
    const key = readFileSync(join(directory.path, 'other_key'), 'utf8');
    expect(other.public).not.toBe('');
    secrets.set('other-key', key.split('\n').slice(1, 3).join('\n'));
    const { username } = sshd;
    for (const login of [
      { password: secret('ssh-password') },
      { privateKey: key },
      { privateKey: key, passphrase: secret('passphrase') },
      { privateKey: secret('no-key') },
      { jump: { username, password: secret('jump-password') } },
      { jump: { username, privateKey: secret('no-jump-key') } },
      { password: secret('one-of-two'), privateKey: key },
    ]) {
      const body = JSON.stringify({ hostname: 'host', username, ...login });
      const answer = await client.fetch('/api/remotes', { method: 'POST', body });
      expect([400, 403]).toContain(answer.status);
    }
  });

  test('a worker killed, and the database gone, in the middle of it', async () => {
    const programs = () =>
      stack.pids().flatMap(({ name, pid }) => (/^windlass-(api|worker)/.test(name) ? [pid] : []));
    const before = programs();
    stack.kill('windlass-worker');
    stack.kill('windlass-api');
    const areAnew = () => {
      const now = programs();
      return now.length === before.length && now.every(pid => !before.includes(pid));
    };
    // The answer of a process that is about to end would do, too.
    await waitFor(async () => areAnew() && (await fetch(`${stack.url}/readyz`)).ok, {
      what: 'other processes, and the service to be back',
      timeoutMs: 60_000,
    });
    const rows = openStackDatabase(stack);
    // Every connection of the service breaks, with whatever was on its way.
    await rows`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'windlass%' and pid <> pg_backend_pid()`;
    await rows.end();
    await waitFor(async () => (await fetch(`${stack.url}/readyz`)).ok, {
      what: 'the service to be back',
      timeoutMs: 60_000,
    });
  });

  test('settings that the database refuses', async () => {
    const url = new URL(settings.DATABASE_URL ?? '');
    url.password = plainSecret('wrong-database');
    const refused = { DATABASE_URL: url.href };
    await startBeside(['dist/api/main.js'], refused, /password|authentication/);
    await startBeside(['dist/workers/main.js'], refused, /password|authentication/);
    await startBeside(['dist/cli/main.js', 'migrate'], refused, /password|refuse|login/);
    await startBeside(
      ['dist/api/main.js'],
      { DATABASE_URL: `mysql://me:${plainSecret('scheme')}@h/x` },
      /DATABASE_URL/,
    );
  });

  if (form.name === 'fleet') {
    test('settings that the object store and Redis refuse', async () => {
      const s3 = { S3_SECRET_KEY: secret('wrong-s3') };
      const api = await findFreePort();
      await startBeside(['dist/api/main.js'], { ...s3, PORT: String(api) }, /the API is ready/);
      const ready = await fetch(`http://127.0.0.1:${api}/readyz`);
      expect(await ready.json()).toMatchObject({
        ready: false,
        checks: { objects: expect.any(String) },
      });
      await startBeside(['dist/cli/main.js', 'up'], s3, /refuses the access key/);
      const redis = new URL(settings.REDIS_URL ?? '');
      redis.username = 'u';
      redis.password = plainSecret('wrong-redis');
      await startBeside(['dist/cli/main.js', 'up'], { REDIS_URL: redis.href }, /Redis/);
    });
  }

  test('none of it is in what was printed', () => {
    const files = ['postgres.log'].map(name => join(stack.dataDir, name)).filter(existsSync);
    const everything = [
      stack.log(),
      printed,
      ...files.map(path => readFileSync(path, 'utf8')),
    ].join('');
    // It was loud.
    for (const said of [
      'job claimed',
      'job ended',
      '"msg":"request"',
      'remote_authentication_failed',
    ])
      expect(everything).toContain(said);
    expect(secrets.size).toBeGreaterThan(15);
    for (const [name, value] of secrets) {
      const spellings = [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)];
      for (const spelling of new Set(spellings))
        expect([name, everything.includes(spelling)]).toEqual([name, false]);
    }
  });
});
