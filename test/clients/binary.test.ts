import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findNode } from '../../scripts/install-node.ts';
import { findProgram } from '../../scripts/programs.ts';
import { RELEASE } from '../../shared/process/release.ts';
import { startCommandLine } from '../harness/clients/command-line.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { startServiceBehindProxy } from '../harness/stacks/service-behind-proxy.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

const root = join(import.meta.dirname, '../..');
const missing = { reason: 'needs npm, for scripts/node-26', obtainable: true };

describeStack(findNode(26) === undefined ? missing : undefined, 'the binary', form => {
  const { stack } = useStack(form);
  const line = useStarted(startCommandLine);
  const folder = () => join(line.home, 'bin');
  const windlass = () => join(folder(), 'windlass');

  test('npm run build:binary makes one file that needs no Node', () => {
    const program = join(root, 'dist/scripts/build-binary.js');
    const built = spawnSync(process.execPath, [program], { cwd: root, encoding: 'utf8' });
    expect([built.status, built.stdout]).toEqual([
      0,
      expect.stringMatching(/windlass: \d+ MiB\n$/),
    ]);
    mkdirSync(folder());
    copyFileSync(join(root, 'dist/windlass'), windlass());
    const run = (args: string[], input = '') =>
      spawnSync(windlass(), args, {
        cwd: line.home,
        encoding: 'utf8',
        input,
        env: { HOME: line.home, PATH: folder() },
      });
    const { url, username, password } = stack;
    const login = run(['login', url, '--user', username, '--password-stdin'], password);
    expect([login.status, login.stderr]).toEqual([0, '']);
    const jobs = run(['jobs', '--limit', '1']);
    expect([jobs.status, jobs.stderr]).toEqual([0, '']);
    expect(jobs.stdout).toMatch(/^ID +STATE/);
    expect(run(['doctor']).status).toBe(0);
    expect(run(['--version']).stdout).toBe(`${RELEASE}\n`);
    // It is the client alone.
    expect(run(['up']).stderr).toContain('acts on the machine of the service');
  }, 180_000);

  test.skipIf(findProgram('openssl') === undefined)(
    'it goes through the proxy of the environment, and trusts whom SSL_CERT_FILE names',
    async () => {
      const behind = await startServiceBehindProxy(stack.url);
      try {
        const network = {
          HTTPS_PROXY: behind.proxy,
          SSL_CERT_FILE: behind.authority,
          NO_PROXY: '',
        };
        const login = ['login', behind.url, '--user', stack.username, '--password-stdin'];
        const logIn = (env: Record<string, string>) =>
          line.startProgram(windlass(), login, { input: stack.password, env }).ended;
        expect(await logIn(network)).toMatchObject({ code: 0, stderr: '' });
        const unknown = await logIn({ ...network, SSL_CERT_FILE: '' });
        expect([unknown.code, unknown.stderr]).toEqual([
          1,
          expect.stringMatching(/certificate.*set SSL_CERT_FILE to a file/),
        ]);
        const run = async (...args: string[]) =>
          (await line.startProgram(windlass(), args, { env: network }).ended).stdout.trim();
        writeFileSync(join(line.home, 'day.csv'), `n\n${'12345678\n'.repeat(2 << 20)}`);
        const model = await run(
          'model',
          'create',
          await run('project', 'create', 'Behind a proxy'),
          'm',
        );
        await run('upload', 'day.csv', '--model', model, '--aid', 'day');
        expect(await run('rows', model, 'day', '--limit', '1')).toBe('n\n12345678');
      } finally {
        await behind.stop();
      }
    },
    60_000,
  );
});
