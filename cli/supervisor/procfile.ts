import { CommandError } from '../command-error.ts';
import type { ProcessSpec } from './supervised-process.ts';

interface ProcfileOptions {
  text: string;
  /** The number of processes for each line (1). */
  each?: number;
  cwd?: string;
}

/** The processes of this name stop first, so that no request is accepted while no worker runs. */
const STOPPED_FIRST = 'api';

/**
 * Parses a Procfile into groups for the supervisor; several processes of a name are `name.1`, `name.2` and so on. A
 * command that begins with `node` runs with this Node and reports readiness by a message. Throws CommandError.
 */
export function readProcfile({ text, each = 1, cwd }: ProcfileOptions): ProcessSpec[][] {
  const specs = [...parseLines(text)].flatMap(([name, text]) => {
    const command = splitCommand(text);
    return Array.from({ length: each }, (_, index) => ({
      name: each === 1 ? name : `${name}.${index + 1}`,
      command,
      cwd,
      readyMessage: command[0] === process.execPath,
    }));
  });
  const isFirst = ({ name }: ProcessSpec) => name.split('.')[0] === STOPPED_FIRST;
  return [specs.filter(isFirst), specs.filter(spec => !isFirst(spec))];
}

function parseLines(text: string): Map<string, string> {
  const commands = new Map<string, string>();
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, name, command] = /^([\w-]+):\s*(\S.*)$/.exec(line) ?? [];
    const place = `Line ${index + 1} of the Procfile`;
    if (!name || !command) throw new CommandError(`${place} is not "name: command".`);
    if (commands.has(name)) throw new CommandError(`${place} names ${name} again.`);
    commands.set(name, command);
  }
  return commands;
}

function splitCommand(text: string): ProcessSpec['command'] {
  const [program = '', ...args] = text.split(/\s+/);
  if (!/^[\w@%+=:,./\s-]+$/.test(text) || program.includes('=')) return ['/bin/sh', '-c', text];
  return [program === 'node' ? process.execPath : program, ...args];
}
