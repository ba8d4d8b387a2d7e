import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findNode } from '../../scripts/install-node.ts';
import { startCommandLine } from '../harness/command-line.ts';
import { describeStack } from '../harness/forms.ts';
import { useStack, useStarted } from '../harness/use-stack.ts';

const root = join(import.meta.dirname, '../..');
const missing = { reason: 'needs npm, for scripts/node-26', obtainable: true };

describeStack(findNode(26) === undefined ? missing : undefined, 'the binary', form => {
  const { stack } = useStack(form);
  const line = useStarted(startCommandLine);

  test('npm run build:binary makes one file that needs no Node', () => {
    const program = join(root, 'dist/scripts/build-binary.js');
    const built = spawnSync(process.execPath, [program], { cwd: root, encoding: 'utf8' });
    expect([built.status, built.stdout]).toEqual([
      0,
      expect.stringMatching(/windlass: \d+ MiB\n$/),
    ]);
    const folder = join(line.home, 'bin');
    mkdirSync(folder);
    const windlass = join(folder, 'windlass');
    copyFileSync(join(root, 'dist/windlass'), windlass);
    const run = (args: string[], input = '') =>
      spawnSync(windlass, args, {
        ...{ cwd: line.home, encoding: 'utf8', input },
        env: { HOME: line.home, PATH: folder },
      });
    const { url, username, password } = stack;
    const login = run(['login', url, '--user', username, '--password-stdin'], password);
    expect([login.status, login.stderr]).toEqual([0, '']);
    const jobs = run(['jobs', '--limit', '1']);
    expect([jobs.status, jobs.stderr]).toEqual([0, '']);
    expect(jobs.stdout).toMatch(/^ID +STATE/);
    expect(run(['doctor']).status).toBe(0);
    // It is the client alone.
    expect(run(['up']).stderr).toContain('acts on the machine of the service');
  }, 180_000);
});
