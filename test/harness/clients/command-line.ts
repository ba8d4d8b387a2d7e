import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endWithThisProcess } from '../../../servers/processes.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { readOwnEnvironment } from '../stacks/stack.ts';

export const PROGRAM = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Started {
  child: ChildProcess;
  /** What was printed so far. */
  said: Ended;
  ended: Promise<Ended>;
}

interface Given {
  /** Standard input; none is /dev/null. */
  input?: string;
  env?: Record<string, string>;
}

/** The command `windlass` of a user with a home of its own. */
export interface CommandLine {
  home: string;
  start(args: string[], given?: Given): Started;
  /** Another program of that user. */
  startProgram(program: string, args: string[], given?: Given): Started;
  /** The command, in a line of bash: `windlass jobs | head -1`, for instance. */
  runInShell(line: string): Promise<Ended>;
  /** start() to its end. */
  run(args: string[], given?: Given): Promise<Ended>;
  /** On a terminal of its own, on which standard output is all that is shown. Needs the program `script`. */
  startOnTerminal(line: string): Started;
  stop(): Promise<void>;
}

export async function startCommandLine(): Promise<CommandLine> {
  const { path: home, remove } = makeTempDir('home');
  const spawnIn = (program: string, args: string[], { input, env }: Given) => {
    const child = spawn(program, args, {
      cwd: home,
      env: { ...readOwnEnvironment(), HOME: home, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    if (input) child.stdin?.end(input);
    return watch(child);
  };
  const start = (args: string[], given: Given = {}) =>
    spawnIn(process.execPath, [PROGRAM, ...args], given);
  return {
    home,
    start,
    startProgram: (program, args, given = {}) => spawnIn(program, args, given),
    runInShell: text =>
      spawnIn(
        'bash',
        ['-c', `windlass() { '${process.execPath}' '${PROGRAM}' "$@"; }\n${text}`],
        {},
      ).ended,
    run: (args, given) => start(args, given).ended,
    startOnTerminal: line =>
      spawnIn('script', ['-qefc', `'${process.execPath}' '${PROGRAM}' ${line}`, '/dev/null'], {
        input: '',
      }),
    stop: async () => remove(),
  };
}

/** Two signals at once count as one: it is sent until the process has ended. */
export function interruptUntilEnded({ child, ended }: Pick<Started, 'child' | 'ended'>) {
  child.kill('SIGINT');
  const again = setInterval(() => child.kill('SIGINT'), 200);
  return ended.finally(() => clearInterval(again));
}

function watch(child: ChildProcess): Started {
  endWithThisProcess(child);
  const said: Ended = { code: null, stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.setEncoding('utf8').on('data', (piece: string) => {
      said[stream] += piece;
    });
  const ended = new Promise<Ended>(resolve =>
    child.once('close', code => resolve({ ...said, code })),
  );
  return { child, said, ended };
}
