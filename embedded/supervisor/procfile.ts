import { StartError } from '../start-error.ts';
import type { ProcessSpec } from './supervised-process.ts';

export interface ProcfileOptions {
  text: string;
  /** How many of each name to run; 1 where it is not named. */
  counts?: Record<string, number>;
  /** The whole environment of each. */
  env?: Record<string, string | undefined>;
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
export function readProcfile({ text, counts = {}, env, cwd }: ProcfileOptions): ProcessSpec[][] {
  const commands = parseLines(text);
  for (const [name, count] of Object.entries(counts)) {
    if (!commands.has(name)) throw new StartError(`The Procfile has no process named ${name}.`);
    if (!Number.isInteger(count) || count < 0) {
      throw new StartError(`The number of ${name} processes must be a whole number, not ${count}.`);
    }
  }
  const specs = [...commands].flatMap(([name, text]) => {
    const command = splitCommand(text);
    const count = counts[name] ?? 1;
    return Array.from({ length: count }, (_, index) => ({
      name: count === 1 ? name : `${name}.${index + 1}`,
      command,
      env,
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
