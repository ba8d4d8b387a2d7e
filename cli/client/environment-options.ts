import { CommandError } from '../command-error.ts';

/** Reads options such as `--env NAME=value`, and `--env NAME` for the value that this process has. */
export function readEnvironment(given: string[] = []): Record<string, string> | undefined {
  if (given.length === 0) return undefined;
  const pairs = given.map(text => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    const known = value ?? process.env[text];
    if (known === undefined)
      throw new CommandError(`--env ${text} has no value.`, { hint: 'Give it as NAME=value.' });
    return [name ?? text, known];
  });
  return Object.fromEntries(pairs);
}
