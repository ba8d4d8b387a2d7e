import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect } from 'vitest';
import type { TestSshd } from '../hosts/sshd.ts';
import type { Stack } from '../stacks/stack.ts';
import { useStarted } from '../stacks/use-stack.ts';
import { type CommandLine, startCommandLine } from './command-line.ts';

/** The command `windlass` of a user who has logged in to the stack, and has a key for the host. */
export function useCommandLine(stack: Stack, sshd: TestSshd) {
  const line = useStarted(startCommandLine);
  const windlass: CommandLine['run'] = (...given) => line.run(...given);

  /** The standard output of a command that must succeed. */
  async function print(args: string[], input?: string): Promise<string> {
    const { code, stdout, stderr } = await windlass(args, { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }
  const printJson = async (args: string[], input?: string) =>
    (await print([...args, '--json'], input))
      .split('\n')
      .filter(Boolean)
      .map(text => JSON.parse(text));

  const keyFile = () => join(line.home, 'key');
  beforeAll(async () => {
    writeFileSync(keyFile(), sshd.privateKey, { mode: 0o600 });
    const { url, username, password } = stack;
    await print(['login', url, '--user', username, '--password-stdin'], password);
  });
  /** The options by which a command logs in to the host. */
  const login = () => ['--user', sshd.username, '--key', keyFile()];

  return { line, windlass, print, printJson, keyFile, login };
}
