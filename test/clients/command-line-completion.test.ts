import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type CommandLine, startCommandLine } from '../harness/clients/command-line.ts';
import { useCommandLine } from '../harness/clients/use-command-line.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

describeStack(missingPrograms('sshd'), 'completion', form => {
  const { stack, sshd, client } = useRemoteStack(form);
  const { print } = useCommandLine(stack, sshd);

  test('words are completed, names of hosts too', async () => {
    const complete = async (...words: string[]) =>
      (await print(['complete', '--', ...words])).split('\n').filter(Boolean);
    expect(await complete('r')).toEqual(['run', 'rows', 'restore', 'retention']);
    expect(await complete('user', 'dis')).toEqual(['disable']);
    expect(await complete('retention', '')).toEqual(['show', 'remove', 'help']);
    expect(await complete('run', '--det')).toEqual(['--detach']);
    const { items } = await client.get<{ items: { name: string }[] }>('/api/hosts');
    expect(await complete('run', '')).toEqual(items.map(({ name }) => name));
    expect(await complete('run', '--user', 'x', 'ho')).toContain('host');
    expect(await complete('run', 'host', '--', 'l')).toEqual([]);
  });
});

describe('completion in shells', () => {
  const windlass = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  /** A folder with the program `windlass`. */
  async function makeBin(): Promise<{ bin: string; line: CommandLine }> {
    const line = await startCommandLine();
    const bin = join(line.home, 'bin');
    mkdirSync(bin);
    const program = `#!/bin/sh\nexec '${process.execPath}' '${windlass}' "$@"\n`;
    writeFileSync(join(bin, 'windlass'), program);
    chmodSync(join(bin, 'windlass'), 0o755);
    return { bin, line };
  }
  const cases = {
    bash: `source <(windlass completion bash)
COMP_WORDS=(windlass user dis) COMP_CWORD=2
_windlass
printf '%s\\n' "\${COMPREPLY[@]}"`,
    zsh: `compadd() { shift; print -l -- "$@" }
source <(windlass completion zsh)
words=(windlass user dis) CURRENT=3
_windlass`,
    fish: `windlass completion fish | source
complete -C 'windlass user dis'; touch dish; complete -C 'windlass user dis'`,
  };
  for (const [shell, text] of Object.entries(cases)) {
    const missing = shell === 'bash' ? undefined : missingPrograms(shell as 'zsh' | 'fish');
    describeUnless(missing, shell, () => {
      test(`${shell} completes a word`, async () => {
        const { bin, line } = await makeBin();
        try {
          const { stdout, stderr } = spawnSync(shell, ['-c', text], {
            cwd: line.home,
            encoding: 'utf8',
            env: { ...process.env, HOME: line.home, PATH: `${bin}:${process.env.PATH}` },
          });
          const times = shell === 'fish' ? 2 : 1;
          expect({ stdout, stderr }).toEqual({ stdout: 'disable\n'.repeat(times), stderr: '' });
        } finally {
          await line.stop();
        }
      });
    });
  }
});
