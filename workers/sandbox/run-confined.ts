import { spawn } from 'node:child_process';
import { confine, findIsolation } from './confine.ts';
import { watchMemory } from './watch-memory.ts';

/** Of the end of standard error. */
const MAX_STDERR_LENGTH = 8192;

interface RunOptions {
  /** Where it runs. */
  directory: string;
  memory: number;
  /** By the clock, and of processor time for each processor that it may use. */
  seconds: number;
  processors?: number;
  fileBytes: number;
  signal: AbortSignal;
}

export interface ConfinedEnd {
  /** Undefined where it could not be started, or was ended by a signal. */
  code: number | undefined;
  stderr: string;
}

/** Runs a program that reads and writes files in a scratch folder to its end. Throws the signal's reason. */
export async function runConfined(
  words: string[],
  { directory, memory, seconds, processors = 1, fileBytes, signal }: RunOptions,
): Promise<ConfinedEnd> {
  const confinement = { memory, processorSeconds: seconds * processors, fileBytes };
  const [program, ...args] = confine(words, confinement, { isolation: await findIsolation() });
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  const end = () => child.kill('SIGKILL');
  signal.addEventListener('abort', end, { once: true });
  const timer = setTimeout(end, Math.min(seconds * 1_000, 2 ** 31 - 1));
  const watch = watchMemory(child, memory, end);
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-MAX_STDERR_LENGTH);
  });
  const code = await new Promise<number | null>(resolve => {
    child.once('error', () => resolve(null));
    child.once('close', resolve);
  });
  clearTimeout(timer);
  clearInterval(watch);
  signal.removeEventListener('abort', end);
  signal.throwIfAborted();
  return { code: code ?? undefined, stderr };
}
