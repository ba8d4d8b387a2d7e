import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { canInstallPython } from '../../scripts/install-python.ts';
import { listTestPythons, PYTHON_CLIENT, type TestPython } from '../../scripts/python-client.ts';
import { endWithThisProcess } from '../../servers/processes.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms, type SkipReason, skipTest } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { readOwnEnvironment } from '../harness/stacks/stack.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { startControlServer } from './control-server.ts';
import { startOptionalHosts } from './optional-hosts.ts';

/** A run of pytest takes a minute, and more where five files share two cores. */
const PYTEST_MS = 600_000;

const pythons = listTestPythons();
const [main] = pythons;

const missingPackages = ({ list, version }: TestPython): SkipReason => ({
  reason: `needs the packages of clients/python/tests/requirements/${list}.txt for Python ${version}`,
  obtainable: canInstallPython(),
});

function missingPython(): SkipReason | undefined {
  if (main === undefined)
    return { reason: 'needs Python ≥ 3.9 with venv (Debian: python3-venv)', obtainable: true };
  return main.installed ? undefined : missingPackages(main);
}

/** Runs a module of Python in the client's folder; rejects with what it said unless it succeeds. */
async function runPython(
  python: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const child = spawn(python, ['-m', ...args], {
    cwd: PYTHON_CLIENT,
    // The checkout stays as it is.
    env: { ...readOwnEnvironment(), PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithThisProcess(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      said += text;
    });
  const code = await new Promise(settle => child.once('close', settle));
  if (code !== 0) throw new Error(`python -m ${args.join(' ')} ended with ${code}:\n${said}`);
  return said;
}

describeStack(
  missingPython() ?? missingPrograms('sshd', 'ffmpeg'),
  'the client in Python',
  form => {
    const { stack, client, sshd } = useRemoteStack(form, { alone: 'kills its API' });
    const proxy = useStarted(() =>
      startTcpProxy({ host: '127.0.0.1', port: Number(new URL(stack.url).port) }),
    );
    const hosts = useStarted(() => startOptionalHosts(client, sshd));
    const control = useStarted(() =>
      startControlServer(stack, proxy, () => hosts.codes?.nextCode() ?? ''),
    );
    const directory = useStarted(async () => {
      const { path, remove } = makeTempDir('python-client');
      return { path, stop: async () => remove() };
    });
    let environment: Record<string, string>;
    const installed = () => join(directory.path, 'installed');

    beforeAll(async () => {
      const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
        name: 'python',
        scope: 'write',
      });
      const key = join(directory.path, 'key');
      writeFileSync(key, sshd.privateKey, { mode: 0o600 });
      // The tests import what users would install.
      const build = ['--no-deps', '--no-build-isolation', '--no-index', '--quiet'];
      if (main?.list === 'full')
        await runPython(main.python, ['pip', 'install', ...build, '--target', installed(), '.']);
      environment = {
        PYTHONPATH: main?.list === 'full' ? installed() : join(PYTHON_CLIENT, 'src'),
        WINDLASS_URL: stack.url,
        WINDLASS_TOKEN: token,
        WINDLASS_TEST_USER: stack.username,
        WINDLASS_TEST_PASSWORD: stack.password,
        WINDLASS_TEST_PROXY: `http://127.0.0.1:${proxy.port}`,
        WINDLASS_TEST_CONTROL: control.url,
        WINDLASS_TEST_ACCOUNT: sshd.username,
        WINDLASS_TEST_KEY: key,
        WINDLASS_TEST_HOME: sshd.home,
      };
    });

    test.runIf(main?.list === 'full')('its types hold, for its users too', async () => {
      const cache = ['--cache-dir', join(directory.path, 'mypy')];
      const said = await runPython(main?.python ?? '', ['mypy', ...cache]);
      expect(said).toMatch(/^Success: no issues found/);
      expect(existsSync(join(installed(), 'windlass/py.typed'))).toBe(true);
    });

    test.runIf(main?.list === 'full')('it is formatted, and has no lint', async () => {
      await runPython(main?.python ?? '', ['ruff', 'check', '--no-cache']);
      await runPython(main?.python ?? '', ['ruff', 'format', '--no-cache', '--check']);
    });

    for (const one of pythons)
      test(
        `passes its tests on Python ${one.version} (${one.list})`,
        async context => {
          if (!one.installed) skipTest(context, missingPackages(one));
          // Once is enough for what takes its time.
          const isMain = one === main;
          const said = await runPython(
            one.python,
            ['pytest', '-q', ...(isMain ? [] : ['-m', 'not long'])],
            isMain ? { ...environment, ...hosts.environment } : environment,
          );
          expect(said).toMatch(/\d+ passed/);
        },
        PYTEST_MS,
      );
  },
);
