import { appendFileSync, chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { collect, useAgentHarness } from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { toRunScript } from '../runs/launch-script.ts';
import type { AgentClient } from './client.ts';

const harness = useAgentHarness();

/** The file that each `-c` of a shell reads, and how it sets a variable for all programs. */
const START_UP_FILES = {
  bash: ['.bashrc', 'export SET=by-a-file'],
  zsh: ['.zshenv', 'export SET=by-a-file'],
  tcsh: ['.cshrc', 'setenv SET by-a-file'],
  csh: ['.cshrc', 'setenv SET by-a-file'],
  fish: ['.config/fish/config.fish', 'set -gx SET by-a-file'],
} as const;

const OPTIONAL = ['zsh', 'tcsh', 'csh', 'fish'] as const;

/** Under SSH bash reads .bashrc. */
const makeHost = (shell: string) => harness.makeHost(shell, { SSH_CLIENT: '127.0.0.1 1 2' });

function writeStartUpFile(host: LocalExec, [file, set]: readonly [string, string]): void {
  const path = join(host.account.home, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `echo read >>~/reads\n${set}\n`);
  appendFileSync(join(host.account.home, 'reads'), '');
}

const readsOf = ({ account }: LocalExec) => readFileSync(join(account.home, 'reads'), 'utf8');

async function launch(client: AgentClient, given: object): Promise<string> {
  const id = harness.newName();
  const on = { shell: client.hello.shell, defaults: { startup: 'once' as const, env: {} } };
  const script = toRunScript({ command: 'printenv SET; cat', ...given }, id, on);
  const events = client.run({ id, token: harness.newName(), ...script });
  const { stdout, stderr } = await collect({ client, id, events });
  return `${stdout}${stderr}`;
}

for (const [name, file] of Object.entries(START_UP_FILES)) {
  const needed = OPTIONAL.filter(program => program === name);
  describeUnless(missingPrograms(...needed), `an account whose shell is ${name}`, () => {
    test('with "once" no command reads the start-up files, whose variables its own precede', async () => {
      const host = makeHost(findProgram(name) ?? '');
      writeStartUpFile(host, file);
      const client = await harness.connect(host);
      const before = readsOf(host);
      expect(before).not.toBe('');
      expect(await launch(client, {})).toBe('by-a-file\n');
      expect(await launch(client, { stdin: 'in', cwd: '/' })).toBe('by-a-file\nin');
      expect(await launch(client, { env: { SET: 'by the launch' } })).toBe('by the launch\n');
      expect(readsOf(host)).toBe(before);
    });
  });
}

describeUnless(missingPrograms('fish'), 'an old fish, which reads its files in any case', () => {
  test('runs commands', async () => {
    const folder = harness.makePath({});
    const fish = join(folder, 'fish');
    writeFileSync(
      fish,
      `#!/bin/sh
case $1 in --no-config) echo unknown option >&2; exit 1 ;; esac
exec ${findProgram('fish')} "$@"
`,
    );
    chmodSync(fish, 0o755);
    const host = makeHost(fish);
    writeStartUpFile(host, START_UP_FILES.fish);
    const client = await harness.connect(host);
    expect(await launch(client, {})).toBe('by-a-file\n');
    expect(await launch(client, { stdin: 'in' })).toBe('by-a-file\nin');
  });
});

test('BASH_ENV is run once for a command, also for one with a folder, variables or input', async () => {
  const host = makeHost(findProgram('bash') ?? '');
  const { home } = host.account;
  writeFileSync(join(home, '.bashrc'), 'export BASH_ENV=~/environment SET=it\n');
  writeFileSync(join(home, 'environment'), 'echo read >>~/reads\n');
  const client = await harness.connect(host);
  for (const more of [{}, { cwd: '/' }, { env: { OWN: 'x' } }, { stdin: 'in' }]) {
    writeFileSync(join(home, 'reads'), '');
    expect(await launch(client, more)).toBe('stdin' in more ? 'it\nin' : 'it\n');
    expect([more, readsOf(host)]).toEqual([more, 'read\n']);
  }
  writeFileSync(join(home, 'other'), 'echo other >>~/reads\n');
  writeFileSync(join(home, 'reads'), '');
  await launch(client, { env: { BASH_ENV: join(home, 'other') } });
  expect(readsOf(host)).toBe('other\n');
});
