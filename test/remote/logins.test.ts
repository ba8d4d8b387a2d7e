import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type Account, makeAccount } from '../harness/clients/accounts.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { addHost, type Job } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

interface Opened {
  sid: string;
  banner?: string;
}

describeStack(missingRoot() ?? missingPrograms('sshd', 'ssh'), 'logins', form => {
  const directory = makeTempDir('logins');
  afterAll(() => directory.remove());
  const { client } = useStack(form);
  let made = 0;

  /** A host with one account of its own, and what is on it for one test. */
  async function withHost(
    lines: string[],
    work: (host: { name: string; account: Account; sshd: TestSshd }) => Promise<void>,
  ): Promise<void> {
    const account = await makeAccount();
    const sshd = await startTestSshd({ account, lines }).catch(async (error: unknown) => {
      await account.remove();
      throw error;
    });
    try {
      const name = await addHost(client, sshd, { name: `logins-${process.pid}-${++made}` });
      await work({ name, account, sshd });
    } finally {
      await sshd.stop();
      await account.remove();
    }
  }
  const open = (body: object) =>
    client.fetch('/api/remotes', { method: 'POST', body: JSON.stringify(body) });
  const run = async (sid: string, command: string) =>
    client.post<{ output: string }>('/api/remotes/launch', { sid, command });
  const keygen = (...args: string[]) => execFileSync('ssh-keygen', ['-q', ...args]);
  const makeKey = (name: string, ...options: string[]) => {
    const path = join(directory.path, `${name}-${++made}`);
    keygen('-N', '', '-f', path, ...options);
    return path;
  };
  const certify = (authority: string, key: string, ...options: string[]) => {
    keygen('-s', authority, '-I', 'a test', ...options, `${key}.pub`);
    return readFileSync(`${key}-cert.pub`, 'utf8');
  };

  test('a certificate lets its key in, of every type', async () => {
    const authority = makeKey('authority', '-t', 'ed25519');
    const lines = [`TrustedUserCAKeys "${authority}.pub"`, 'AuthorizedKeysFile none'];
    await withHost(lines, async ({ name, account: { username } }) => {
      for (const type of [['ed25519'], ['rsa', '-b', '2048'], ['ecdsa', '-b', '384']]) {
        const key = makeKey('user', '-t', ...type);
        const login = { hostname: name, username, privateKey: readFileSync(key, 'utf8') };
        const certificate = certify(authority, key, '-n', username);
        const { sid } = await client.post<Opened>('/api/remotes', { ...login, certificate });
        expect((await run(sid, 'echo in')).output).toBe('in\n');
        const other = certify(authority, key, '-n', 'somebody-else');
        await expectProblem(
          await open({ ...login, certificate: other }),
          403,
          'remote_authentication_failed',
        );
      }
    });
  });

  test('a certificate that no host would take is an error of its field', async () => {
    const authority = makeKey('authority', '-t', 'ed25519');
    const [key, stranger] = [makeKey('user', '-t', 'ed25519'), makeKey('user', '-t', 'ed25519')];
    await withHost([], async ({ name, account: { username } }) => {
      const login = { hostname: name, username, privateKey: readFileSync(key, 'utf8') };
      const cases = [
        { certificate: certify(authority, stranger, '-n', username), says: 'another key' },
        { certificate: certify(authority, key, '-h', '-n', username), says: 'not a host' },
        {
          certificate: certify(authority, key, '-n', username, '-V', '20200101:20200102'),
          says: 'is valid from 2020',
        },
        { certificate: readFileSync(`${key}.pub`, 'utf8'), says: 'must be an OpenSSH certificate' },
      ];
      for (const { certificate, says } of cases) {
        const problem = await expectProblem(
          await open({ ...login, certificate }),
          400,
          'invalid_input',
        );
        expect(JSON.stringify(problem)).toContain(says);
        expect(JSON.stringify(problem)).toContain('certificate');
      }
    });
  });

  test('text that no host would take is an error of its field, and nothing is sent', async () => {
    await withHost([], async ({ name, account: { username }, sshd }) => {
      const given = { hostname: name, username };
      const { privateKey } = sshd;
      const opened = await open({ ...given, privateKey });
      const { sid } = (await opened.json()) as Opened;
      for (const bad of ['x\0y', 'x\ud800y'])
        for (const [path, field, body] of [
          ['', 'password', { ...given, password: bad }],
          ['', 'passphrase', { ...given, privateKey, passphrase: bad }],
          ['', 'jump.password', { ...given, privateKey, jump: { username, password: bad } }],
          [`/${sid}/login`, 'password', { password: bad }],
          [`/${sid}/answers`, 'answers.1', { challenge: 'c', answers: ['x', bad] }],
        ] as const) {
          const init = { method: 'POST', body: JSON.stringify(body) };
          const answer = await client.fetch(`/api/remotes${path}`, init);
          const problem = await expectProblem(answer, 400, 'invalid_input');
          expect(problem).toMatchObject({ fields: [{ field }] });
          expect(problem.detail).toMatch(/must (not hold a NUL character|be well-formed Unicode)/);
        }
    });
  });

  test('what the host shows at the login is in the answer', async () => {
    const banner = join(directory.path, 'banner');
    writeFileSync(banner, 'Maintenance on Monday.\n\u001b[31mBe quick.\n');
    await withHost([`Banner "${banner}"`], async ({ name, account, sshd }) => {
      const { username, password } = account;
      for (const credential of [{ password }, { privateKey: sshd.privateKey }]) {
        const login = { hostname: name, username, ...credential };
        const opened = await client.post<Opened>('/api/remotes', login);
        expect(opened.banner).toBe('Maintenance on Monday.\n[31mBe quick.');
        // The job of the login tells where a file manager begins.
        const { items } = await client.get<{ items: Job[] }>(`/api/jobs?session=${opened.sid}`);
        expect(items.map(({ result }) => result?.home)).toEqual([account.home]);
      }
      const refused = await open({ hostname: name, username, password: 'wrong' });
      const problem = await expectProblem(refused, 403, 'remote_authentication_failed');
      expect(problem.detail).toContain('Maintenance on Monday.');
    });
  });

  for (const agent of [true, false]) {
    test(`an account or a password that has expired is told in the host's words, ${agent ? 'with' : 'without'} an agent`, async () => {
      await withHost(['UsePAM yes'], async ({ name, account, sshd }) => {
        const login = { hostname: name, username: account.username, agent };
        const credentials = [{ privateKey: sshd.privateKey }, { password: account.password }];
        const expectUnusable = async (words: string) => {
          for (const credential of credentials) {
            const answer = await open({ ...login, ...credential });
            const problem = await expectProblem(answer, 403, 'account_unusable');
            expect(problem.detail).toContain(words);
          }
        };
        for (const credential of credentials)
          expect((await open({ ...login, ...credential })).status).toBe(200);
        execFileSync('chage', ['-d', '0', account.username]);
        await expectUnusable('password has expired');
        execFileSync('chage', ['-d', '-1', '-E', '0', account.username]);
        await expectUnusable('account has expired');
      });
    });
  }
});
