import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Account, makeAccount, type ShellName } from '../harness/clients/accounts.ts';
import { addHost } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Answer {
  output: string;
  errors: string;
  returncode: number;
}

const SHELLS = ['bash', 'dash', 'busybox', 'ksh', 'zsh', 'tcsh', 'csh', 'fish'] as const;
const skip =
  missingRoot() ?? missingPrograms('sshd', 'busybox', 'ksh', 'zsh', 'tcsh', 'csh', 'fish');

/** Real accounts, with a password and with the shells that people have. */
describeUnless(skip, 'accounts on a host', () => {
  const { client } = useStack({ start: startStack });

  async function withAccount(
    shell: ShellName,
    work: (on: { account: Account; sshd: TestSshd; open: () => Promise<string> }) => Promise<void>,
  ): Promise<void> {
    const account = await makeAccount({ shell });
    const sshd = await startTestSshd({ account });
    try {
      const hostname = await addHost(client, sshd, { name: `${shell}-${sshd.port}` });
      const open = async () => {
        const login = { hostname, username: account.username, password: account.password };
        return (await client.post<{ sid: string }>('/api/remotes', login)).sid;
      };
      await work({ account, sshd, open });
    } finally {
      await sshd.stop();
      await account.remove();
    }
  }

  const launch = (sid: string, command: string) =>
    client.post<Answer>('/api/remotes/launch', { sid, command });

  for (const shell of SHELLS) {
    test(`${shell}: a password, a command of its own, and nothing left but the agent`, () =>
      withAccount(shell, async ({ account, open }) => {
        const sid = await open();
        const own = shell === 'fish' ? 'set -l x (echo own); echo $x; false' : 'echo own; false';
        expect(await launch(sid, own)).toMatchObject({
          output: 'own\n',
          errors: '',
          returncode: 1,
        });
        expect((await launch(sid, 'pwd')).output).toBe(`${account.home}\n`);
        await client.delete(`/api/remotes/${sid}`);
        const left = () =>
          readdirSync(join(account.home, '.windlass'), { recursive: true, withFileTypes: true })
            .filter(entry => !entry.isDirectory())
            .map(entry => entry.name);
        await waitFor(() => left().every(name => /^agent-[0-9a-f]+\.sh$|^\.label$/.test(name)), {
          what: 'nothing but the agent under ~/.windlass',
          timeoutMs: 20_000,
        });
      }));
  }

  test.each([
    ['bash', '.bashrc', '{ builtin cd "$@" && ls; }; export -f cd'],
    ['zsh', '.zshenv', '{ builtin cd "$@" && ls }'],
  ] as const)(
    '%s: a `cd` of its own that prints is not in the output of a command in a folder',
    (shell, file, body) =>
      withAccount(shell, async ({ account, sshd }) => {
        const path = join(account.home, file);
        const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
        writeFileSync(path, `cd() ${body}\n${before}`);
        const { username, password } = account;
        for (const how of [{}, { startup: 'each' }, { agent: false }]) {
          const login = { hostname: `${shell}-${sshd.port}`, username, password, ...how };
          const { sid } = await client.post<{ sid: string }>('/api/remotes', login);
          const given = { sid, command: 'cat; pwd', cwd: '/usr', stdin: 'in\n' };
          expect(await client.post('/api/remotes/launch', given)).toMatchObject({
            output: 'in\n/usr\n',
            errors: '',
            returncode: 0,
          });
          // With "once" a command sees functions that are exported, as those of zsh cannot be.
          const isThere = shell === 'bash' || Object.keys(how).length > 0;
          const output = isThere ? expect.stringContaining('\n/usr') : '/usr\n';
          expect(await launch(sid, 'cd /usr; pwd')).toMatchObject({ output });
          await client.delete(`/api/remotes/${sid}`);
        }
      }),
  );

  test('a function that the start-up files export works in a command, as over plain ssh', () =>
    withAccount('bash', async ({ account, open }) => {
      const bashrc = join(account.home, '.bashrc');
      const before = readFileSync(bashrc, 'utf8');
      writeFileSync(bashrc, `module() { echo "module $*"; }\nexport -f module\n${before}`);
      const sid = await open();
      expect((await launch(sid, 'module load gcc')).output).toBe('module load gcc\n');
    }));

  test('start-up files that print are named, with and without an agent', () =>
    withAccount('bash', async ({ account, sshd }) => {
      writeFileSync(join(account.home, '.bashrc'), 'echo Welcome\n');
      const hostname = `bash-${sshd.port}`;
      for (const agent of [true, false]) {
        const response = await client.fetch('/api/remotes', {
          method: 'POST',
          body: JSON.stringify({
            hostname,
            username: account.username,
            password: account.password,
            agent,
          }),
        });
        expect(response.status).toBe(500);
        const problem = (await response.json()) as { code: string; detail: string };
        expect(problem.code).toBe('startup_files_print');
        expect(problem.detail).toContain('Welcome');
      }
    }));
});
