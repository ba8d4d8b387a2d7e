import { StartError } from '../start-error.ts';
import type { ProcessSpec } from './supervised-process.ts';

export interface ProcfileOptions {
  text: string;
  /** How many of each name to run. */
  each?: number;
  cwd?: string;
}

/** The name whose processes are stopped first, so that no request is taken that nobody will serve. */
const STOPPED_FIRST = 'api';

/**
 * Reads a Procfile, `name: command` a line, as the groups to supervise. Several of one name are
 * called `name.1`, `name.2` … A command that begins with `node` is run by this very Node and says
 * itself when it is ready; one that needs a shell is given to one.
 * Throws StartError that names the line.
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
    if (!name || !command) throw new StartError(`${place} is not "name: command".`);
    if (commands.has(name)) throw new StartError(`${place} names ${name} again.`);
    commands.set(name, command);
  }
  return commands;
}

function splitCommand(text: string): ProcessSpec['command'] {
  const [program = '', ...args] = text.split(/\s+/);
  if (!/^[\w@%+=:,./\s-]+$/.test(text) || program.includes('=')) return ['/bin/sh', '-c', text];
  return [program === 'node' ? process.execPath : program, ...args];
}
