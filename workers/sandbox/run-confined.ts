import { spawn } from 'node:child_process';
import { MAX_TIMER_MS } from '../../shared/process/max-timer.ts';
import { signalNumber } from '../runs/signal-number.ts';
import { closePipesAfterExit } from './close-pipes.ts';
import { confine, findIsolation } from './confine.ts';
import { diskFull, watchScratch } from './scratch-dir.ts';
import { watchMemory } from './watch-memory.ts';

/** How much of the end of standard error is kept. */
const MAX_STDERR_LENGTH = 8192;

interface RunOptions {
  /** Where it runs. */
  directory: string;
  memory: number;
  /** By the clock, and of processor time for each processor that it may use. */
  seconds: number;
  processors?: number;
  fileBytes: number;
  /** LIMIT_FREE_BYTES. */
  keepFree: number;
  signal: AbortSignal;
}

interface ConfinedEnd {
  /** 128 + n for signal n, -1 where it could not be started. */
  code: number;
  stderr: string;
}

/**
 * Runs a program on files of a scratch directory until it ends. Throws the signal's reason, and `insufficient_storage`.
 */
export async function runConfined(
  words: string[],
  { directory, memory, seconds, processors = 1, fileBytes, keepFree, signal }: RunOptions,
): Promise<ConfinedEnd> {
  const confinement = { memory, processorSeconds: seconds * processors, fileBytes };
  const [program, ...args] = confine(words, confinement, { isolation: await findIsolation() });
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  closePipesAfterExit(child);
  const end = () => child.kill('SIGKILL');
  signal.addEventListener('abort', end, { once: true });
  const timer = setTimeout(end, Math.min(seconds * 1_000, MAX_TIMER_MS));
  const watch = watchMemory(child, memory, end);
  let isFull = false;
  const watchDisk = watchScratch(keepFree, () => {
    isFull = true;
    end();
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-MAX_STDERR_LENGTH);
  });
  const code = await new Promise<number>(resolve => {
    child.once('error', () => resolve(-1));
    child.once('close', (code, signal) => resolve(code ?? 128 + signalNumber(signal ?? '')));
  });
  clearTimeout(timer);
  clearInterval(watch);
  clearInterval(watchDisk);
  signal.removeEventListener('abort', end);
  signal.throwIfAborted();
  if (isFull) throw diskFull();
  return { code, stderr };
}
