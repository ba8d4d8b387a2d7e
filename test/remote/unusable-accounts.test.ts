import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { type Account, makeAccount, type ShellName } from '../harness/clients/accounts.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { hideProc, missingHiddenProc } from '../harness/hosts/hidden-proc.ts';
import { addHost } from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms, missingRoot, skipTest } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

interface Case {
  what: string;
  lines?: string[];
  shell?: ShellName;
  bashrc?: string;
  /** In the error's detail. */
  says?: string;
}

const skip = missingRoot() ?? missingPrograms('sshd', 'busybox', 'zsh');

/** What real accounts have instead of a shell that runs any command. */
describeUnless(skip, 'accounts that a session cannot use', () => {
  const { client } = useStack({ start: startStack });
  const directory = makeTempDir('unusable');
  afterAll(() => directory.remove());

  async function withHost(
    { lines, shell, bashrc }: Pick<Case, 'lines' | 'shell' | 'bashrc'>,
    work: (on: { account: Account; open: (agent: boolean) => Promise<Response> }) => Promise<void>,
  ): Promise<void> {
    const account = await makeAccount({ shell });
    if (bashrc !== undefined) writeFileSync(join(account.home, '.bashrc'), bashrc);
    const sshd = await startTestSshd({ account, lines });
    try {
      const hostname = await addHost(client, sshd, { name: `unusable-${sshd.port}` });
      const { username, password } = account;
      const open = (agent: boolean) =>
        client.fetch('/api/remotes', {
          method: 'POST',
          body: JSON.stringify({ hostname, username, password, agent }),
        });
      await work({ account, open });
    } finally {
      await sshd.stop();
      await account.remove();
    }
  }

  const cases: Case[] = [
    { what: 'internal-sftp', lines: ['ForceCommand internal-sftp'], says: 'sftp' },
    {
      what: 'a ForceCommand that prints',
      lines: ['ForceCommand echo "Use the portal."'],
      says: 'Use the portal',
    },
    { what: 'a ForceCommand that is silent', lines: ['ForceCommand /bin/true'] },
    { what: 'a restricted shell', bashrc: 'set -r\n', says: 'restricted' },
    {
      what: 'a start-up file that ends the shell',
      bashrc: 'echo "Account closed." >&2; exit 1\n',
      says: 'Account closed',
    },
    {
      what: 'a start-up file that starts another shell',
      bashrc: `exec ${findProgram('zsh')}\n`,
      says: 'exec zsh',
    },
  ];

  test.each(cases)('$what is shell_unusable, with what the host said', async one => {
    await withHost(one, async ({ open }) => {
      for (const agent of [true, false]) {
        if (!agent && one.bashrc === 'set -r\n') continue; // Without an agent it runs what it may.
        const problem = await expectProblem(await open(agent), 400, 'shell_unusable');
        expect(`${problem.detail} ${problem.hint}`).toContain(one.says ?? 'ForceCommand');
      }
    });
  });

  test('without SFTP a session opens and runs commands; files are sftp_unavailable', async () => {
    for (const line of ['Subsystem sftp /nowhere/sftp-server', 'Subsystem other /bin/true'])
      await withHost({ lines: [line] }, async ({ account, open }) => {
        const { sid } = (await (await open(true)).json()) as { sid: string };
        const launched = await client.post('/api/remotes/launch', { sid, command: 'echo here' });
        expect(launched).toMatchObject({ output: 'here\n' });
        const asked = { [`browse${account.home}`]: 'POST', [`file${account.home}/.bashrc`]: 'GET' };
        for (const [path, method] of Object.entries(asked)) {
          const response = await client.fetch(`/api/remotes/${sid}/${path}`, { method });
          await expectProblem(response, 409, 'sftp_unavailable');
        }
      });
  });

  test('a file is sftp_unavailable where the SFTP cannot give it its name', async () => {
    const lines = ['Subsystem sftp internal-sftp -P posix-rename,hardlink'];
    await withHost({ lines }, async ({ account, open }) => {
      const { sid } = (await (await open(true)).json()) as { sid: string };
      for (const [headers, extension] of [
        [{}, 'posix-rename@openssh.com'],
        [{ 'If-None-Match': '*' }, 'hardlink@openssh.com'],
      ] as const) {
        const answer = await client.fetch(`/api/remotes/${sid}/file${account.home}/new`, {
          method: 'PUT',
          body: 'text',
          headers: { 'Content-Type': 'application/octet-stream', ...headers },
        });
        const { detail } = await expectProblem(answer, 409, 'sftp_unavailable');
        expect(detail).toContain(extension);
        expect(readdirSync(account.home).filter(name => /new|windlass-/.test(name))).toEqual([]);
      }
    });
  });

  /** A folder with BusyBox under the names of all its applets, and nothing else. */
  function installBusyBox(): string {
    const folder = join(directory.path, 'busybox');
    mkdirSync(folder, { recursive: true });
    execFileSync(findProgram('busybox') ?? 'busybox', ['--install', '-s', folder]);
    chmodSync(directory.path, 0o755);
    return folder;
  }

  test('BusyBox alone works', async () => {
    const lines = [`SetEnv PATH=${installBusyBox()}`];
    await withHost({ lines, shell: 'busybox' }, async ({ open }) => {
      const { sid } = (await (await open(true)).json()) as { sid: string };
      const command = 'readlink -f "$(command -v ps)"; seq 3; echo oh >&2; exit 4';
      expect(await client.post('/api/remotes/launch', { sid, command })).toMatchObject({
        output: expect.stringMatching(/busybox\n1\n2\n3\n$/),
        errors: 'oh\n',
        returncode: 4,
      });
    });
  });

  test('BusyBox without /proc is host_unsupported, and what is missing is named', async context => {
    const missing = missingHiddenProc();
    if (missing) skipTest(context, missing);
    const folder = installBusyBox();
    const { shell } = hideProc(directory.path);
    const login = join(directory.path, 'login');
    const enter = `export PATH=${folder} SHELL=${shell}\nexec ${shell} -c "$SSH_ORIGINAL_COMMAND"`;
    writeFileSync(login, `#!/bin/sh\n${enter}\n`, { mode: 0o755 });
    const sshd = await startTestSshd({ lines: [`ForceCommand ${login}`] });
    try {
      const hostname = await addHost(client, sshd, { name: `without-proc-${sshd.port}` });
      const { username, privateKey } = sshd;
      const response = await client.fetch('/api/remotes', {
        method: 'POST',
        body: JSON.stringify({ hostname, username, privateKey }),
      });
      const problem = await expectProblem(response, 400, 'host_unsupported');
      expect(problem.detail).toContain('/proc');
    } finally {
      await sshd.stop();
    }
  });
});
