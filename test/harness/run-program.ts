import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithThisProcess } from '../../servers/processes.ts';
import { readOwnEnvironment } from './stacks/stack.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface ProgramEnd {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunningProgram {
  child: ChildProcess;
  /** What was printed so far. */
  stdout(): string;
  stderr(): string;
  ended: Promise<ProgramEnd>;
}

/** Starts a program of the checkout, such as `dist/cli/main.js`, with these settings and no others. */
export function startProgram(options: {
  args: string[];
  cwd: string;
  settings?: Record<string, string>;
  /** Default: this checkout. */
  root?: string;
  /** Another user, where the tests run as root. */
  uid?: number;
}): RunningProgram {
  const [program = '', ...args] = options.args;
  const child = spawn(process.execPath, [join(options.root ?? ROOT, program), ...args], {
    // Not the checkout, whose .env is the developer's.
    cwd: options.cwd,
    uid: options.uid,
    env: { ...readOwnEnvironment(), ...options.settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithThisProcess(child);
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', piece => {
      texts[name] += piece;
    });
  }
  const ended = new Promise<ProgramEnd>(resolve =>
    child.once('close', code => resolve({ code, ...texts })),
  );
  return { child, stdout: () => texts.stdout, stderr: () => texts.stderr, ended };
}
