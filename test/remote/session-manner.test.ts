import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Account, makeAccount, type ShellName } from '../harness/clients/accounts.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addHost } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Result {
  output: string;
  errors: string;
  returncode: number;
}

/** What no start-up file exports, and what tells how often it was read. */
const BASHRC = `
shopt -s expand_aliases extglob nullglob
alias greet='echo hello from an alias'
conda() { if [ "$1" = activate ]; then CONDA_PREFIX=/envs/$2; else echo "in \${CONDA_PREFIX-none}"; fi; }
tests_of_options=$(shopt -p)
export READ=$((\${READ-0} + 1)) PATH="$HOME/own:$PATH" LINES_OF="one
two \\\\ 'quoted' \\"twice\\" \\$HOME"
umask 027
`;

/** Those that other shells read for each command. */
const START_UP_FILES: Partial<Record<ShellName, [string, string]>> = {
  zsh: ['.zshenv', 'export OWN=x$OWN'],
  tcsh: ['.tcshrc', 'setenv OWN x'],
  fish: ['.config/fish/config.fish', 'set -gx OWN x$OWN'],
};

const skip =
  missingRoot() ?? missingPrograms('sshd', 'ssh', 'zsh', 'tcsh', 'fish', 'ksh', 'busybox');

describeStack(skip, 'how the commands of a session are run', form => {
  const { client, stack } = useStack(form);
  const sql = useStackDatabase(stack);

  /** An account, and what plain ssh gets from it. */
  function useAccount(shell: ShellName) {
    const on = {} as { account: Account; sshd: TestSshd; hostname: string };
    beforeAll(async () => {
      on.account = await makeAccount({ shell });
      on.sshd = await startTestSshd({ account: on.account });
      on.hostname = await addHost(client, on.sshd, { name: `manner-${shell}` });
    });
    afterAll(async () => {
      await on.sshd.stop();
      await on.account.remove();
    });
    const open = async (more: object) => {
      const { hostname, account } = on;
      const login = { hostname, username: account.username, password: account.password };
      return (await client.post<{ sid: string }>('/api/remotes', { ...login, ...more })).sid;
    };
    return Object.assign(on, { open });
  }

  async function overSsh({ account, sshd }: { account: Account; sshd: TestSshd }, command: string) {
    const key = join(account.home, '..', 'key');
    writeFileSync(key, `${sshd.privateKey}\n`, { mode: 0o600 });
    const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
    const args = ['-F', 'none', '-i', key, '-p', `${sshd.port}`];
    for (const option of options) args.push('-o', option);
    const ran = promisify(execFile)('ssh', [...args, `${account.username}@127.0.0.1`, command]);
    ran.child.stdin?.end();
    return ran.then(
      ({ stdout, stderr }) => ({ output: stdout, errors: stderr, returncode: 0 }),
      ({ stdout, stderr, code }) => ({ output: stdout, errors: stderr, returncode: code }),
    );
  }

  const launch = (sid: string, command: string, more: object = {}) =>
    client.post<Result>('/api/remotes/launch', { sid, command, ...more });

  describe('with bash', () => {
    const on = useAccount('bash');
    beforeAll(() => {
      mkdirSync(join(on.account.home, 'own'));
      writeFileSync(join(on.account.home, '.bashrc'), BASHRC);
    });

    const COMMANDS = [
      'greet; type greet',
      'conda activate science && conda list',
      'conda() { false; }; conda',
      'printf "%s\\n" "$tests_of_options"; echo *.none; echo "$READ"',
      'declare -F; alias; umask; pwd; ulimit -a',
      'printf "%s\\n" "$LINES_OF"',
      "echo 'it''s' \"$PATH\"\nexit 7",
      'if',
      'kill -9 $$',
    ];

    test('with "each" a command sees what it sees over plain ssh, and with "once" what is exported', async () => {
      const each = await on.open({ startup: 'each' });
      for (const command of COMMANDS) {
        const [ours, plain] = [await launch(each, command), await overSsh(on, command)];
        // sshd calls the shell by its name alone; ssh itself has no status of a signal.
        const errors = ours.errors.replaceAll(on.account.shell, 'bash');
        if (command.startsWith('kill')) expect(ours.returncode).toBe(137);
        else expect({ ...ours, errors }).toMatchObject(plain);
      }
      const files = readdirSync(join(on.account.home, '.windlass'));
      expect(files.filter(name => name.startsWith('login'))).toEqual([]);
      const once = await on.open({});
      expect(await launch(once, 'greet')).toMatchObject({ output: '', returncode: 127 });
      expect(await launch(once, 'conda list')).toMatchObject({ output: '', returncode: 127 });
      expect((await launch(once, 'echo $READ')).output).toBe('1\n');
    });

    test('its folder, variables and input change nothing of that', async () => {
      const more = { cwd: 'own', env: { MINE: 'a b' }, stdin: 'in' };
      const command = 'echo "$READ $MINE $(basename "$PWD")"; cat';
      for (const startup of ['each', 'once']) {
        const sid = await on.open({ startup });
        expect(await launch(sid, command, more)).toMatchObject({
          output: '1 a b own\nin',
          errors: '',
          returncode: 0,
        });
        if (startup === 'each') {
          const { output } = await launch(sid, 'conda activate x; conda list; greet', more);
          expect(output).toBe('in /envs/x\nhello from an alias\n');
        }
        await expectProblem(
          await client.fetch('/api/remotes/launch', {
            method: 'POST',
            body: JSON.stringify({ sid, command, cwd: 'nowhere' }),
          }),
          400,
          'cwd_not_found',
        );
      }
    });

    test('the variables of a session are those of all its commands, whose own come first', async () => {
      for (const way of [{}, { startup: 'each' }, { agent: false }]) {
        const env = { LANG: 'C', COLOUR: `it's "blue"\n` };
        const sid = await on.open({ env, ...way });
        const show = 'printf "%s|%s" "$LANG" "$COLOUR"';
        expect((await launch(sid, show)).output).toBe(`C|${env.COLOUR}`);
        expect((await launch(sid, show, { env: { COLOUR: 'red' } })).output).toBe('C|red');
        const record = await client.get<object>(`/api/remotes/${sid}`);
        const startup = 'startup' in way || 'agent' in way ? 'each' : 'once';
        expect(record).toMatchObject({ startup, env: ['LANG', 'COLOUR'] });
        expect(JSON.stringify(record)).not.toContain('blue');
        const listed = await client.get<{ items: object[] }>('/api/remotes');
        expect(listed.items).toContainEqual(record);
      }
    });

    test('variables are sealed, and erased with the credential', async () => {
      const sid = await on.open({ env: { WORD: 'heliotrope' } });
      await launch(sid, 'true');
      const [row] = await sql`select * from sessions where sid = ${sid}`;
      expect(row?.sealed_env).toBeInstanceOf(Buffer);
      expect(String(row?.sealed_env)).not.toContain('heliotrope');
      const payloads = await sql`select payload from jobs where session = ${sid}`;
      expect(JSON.stringify(payloads)).not.toContain('heliotrope');
      await client.delete(`/api/remotes/${sid}`);
      await waitFor(
        async () => {
          const [ended] = await sql`select sealed, sealed_env from sessions where sid = ${sid}`;
          return ended?.sealed === null && ended.sealed_env === null;
        },
        { what: 'the credential to be erased', timeoutMs: 30_000 },
      );
    });

    test('what is no variable or no such time is named', async () => {
      const wrong: [string, object][] = [
        ['env.A', { env: { A: 'x\0y' } }],
        ['env', { env: { 'A-B': 'x' } }],
        ['env', { env: { A: 'x'.repeat(65_536) } }],
        ['startup', { startup: 'always' }],
        ['startup', { startup: 'once', agent: false }],
      ];
      const { hostname, account } = on;
      const login = { hostname, username: account.username, password: account.password };
      for (const [field, more] of wrong) {
        const answer = await client.fetch('/api/remotes', {
          method: 'POST',
          body: JSON.stringify({ ...login, ...more }),
        });
        const problem = await expectProblem(answer, 400, 'invalid_input');
        expect(problem.detail).toContain(field);
      }
    });

    test('of many variables a record names some', async () => {
      const env = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`V${n}`, 'x']));
      const sid = await on.open({ env });
      const { env: names } = await client.get<{ env: string[] }>(`/api/remotes/${sid}`);
      expect(names).toEqual(Object.keys(env).slice(0, 100));
      expect((await launch(sid, 'echo $V0 $V999')).output).toBe('x x\n');
    });
  });

  for (const shell of ['dash', 'zsh', 'ksh', 'busybox', 'tcsh', 'fish'] as const) {
    describe(`with ${shell}`, () => {
      const on = useAccount(shell);

      test('with "each" a command has the environment that it has over plain ssh', async () => {
        const [file, text] = START_UP_FILES[shell] ?? [];
        if (file !== undefined) {
          mkdirSync(join(on.account.home, file, '..'), { recursive: true });
          writeFileSync(join(on.account.home, file), `${text}\n`);
        }
        const sid = await on.open({ startup: 'each' });
        const environment = async (run: (command: string) => Promise<Result>) => {
          const { output, errors } = await run('env; pwd');
          expect(errors).toBe('');
          return (
            output
              .split('\n')
              // ksh puts its PID into `_`.
              .filter(line => !/^(SSH_|WINDLASS_RUN=|_=)/.test(line))
              .sort()
          );
        };
        expect(await environment(command => launch(sid, command))).toEqual(
          await environment(command => overSsh(on, command)),
        );
      });
    });
  }
});
