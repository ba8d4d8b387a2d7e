import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WindlassError } from '../../../shared/errors/errors.ts';
import { MAX_TIMER_MS } from '../../../shared/process/max-timer.ts';
import { packageRoot } from '../../../shared/process/package-root.ts';
import { saysUnloadable, UnloadableProgram } from '../../engine/unloadable-program.ts';
import { closePipesAfterExit } from '../../sandbox/close-pipes.ts';
import { confine, findIsolation } from '../../sandbox/confine.ts';
import { diskFull, emptyScratch, freeForScratch, watchScratch } from '../../sandbox/scratch-dir.ts';
import { isStopSignal, throwIfWorkerStops } from '../../sandbox/stop-signals.ts';
import { watchMemory } from '../../sandbox/watch-memory.ts';
import { type AttemptResources, afterLackOfMemory, LackOfMemory } from './lack-of-memory.ts';
import { type Made, TableError, type TableRequest } from './protocol.ts';
import { type LastAnswer, readAnswer } from './read-answer.ts';

/** Always the compiled one, because Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/workers/parsers/child.js', packageRoot));
/** Limit of attempts with a child that lacks memory. */
const MAX_ATTEMPTS = 3;
/** V8 reserves 10 GB of addresses for a WebAssembly memory, unless it checks its bounds itself. */
const NO_WASM_CAGE = '--disable-wasm-trap-handler';
/** V8's share of the limit. */
const HEAP_MB = 96;

type Bounded<T> = T extends TableRequest ? Omit<T, 'memory'> : never;
type Unlimited<T> = T extends TableRequest ? Omit<T, 'memory' | 'threads' | 'share'> : never;

export interface RunOptions {
  /** The most bytes of memory that the child may use. */
  memory: number;
  seconds: number;
  /** LIMIT_FREE_BYTES. */
  keepFree: number;
  /** Settles when the child's input is there. It starts meanwhile, which takes 140 ms. */
  input?: Promise<void>;
  onProgress(share: number): void;
  signal: AbortSignal;
}

/**
 * Runs a table request in a child process; settles at its exit. Throws TableError for problems of the file,
 * WindlassError `parse_failed`, `time_limit` or `insufficient_storage` for limits, UnloadableProgram, and the signal's reason.
 */
export async function runTableChild<K extends keyof Made>(
  request: Extract<Unlimited<TableRequest>, { kind: K }>,
  options: RunOptions,
): Promise<Made[K]> {
  let resources: AttemptResources = { threads: 2 };
  for (let tries = 1; ; tries++) {
    try {
      return (await runOnce({ ...request, ...resources }, options)) as Made[K];
    } catch (error) {
      if (!(error instanceof LackOfMemory)) throw error;
      const next = afterLackOfMemory(error.kind, resources);
      if (tries === MAX_ATTEMPTS || !next) throw tooLarge(options.memory);
      resources = next;
    }
    // What the ended attempt has written.
    await emptyScratch(request.scratch, basename(request.input));
  }
}

async function runOnce(
  request: Bounded<TableRequest>,
  options: RunOptions,
): Promise<Made[keyof Made]> {
  const { memory, seconds, keepFree, input, signal } = options;
  const [program, ...args] = confine(
    [process.execPath, `--max-old-space-size=${HEAP_MB}`, NO_WASM_CAGE, PROGRAM],
    {
      memory,
      processorSeconds: seconds * availableParallelism(),
      fileBytes: Math.max(0, await freeForScratch(keepFree)),
    },
    {
      isolation: await findIsolation(),
      // glibc keeps freed memory in one arena for each thread, and is configured by the environment only.
      env: {
        MALLOC_ARENA_MAX: '2',
        UV_THREADPOOL_SIZE: String(Math.min(4, availableParallelism() + 1)),
      },
    },
  );
  signal.throwIfAborted();
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], cwd: '/' });
  closePipesAfterExit(child);
  const ended = new Promise<void>(resolve => {
    for (const event of ['close', 'error']) child.once(event, () => resolve());
  });
  let reason: unknown;
  const end = (why: unknown) => {
    reason ??= why;
    child.kill('SIGKILL');
  };
  const onAbort = () => end(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let timer: NodeJS.Timeout | undefined;
  const watches = [
    watchMemory(child, memory, () => end(new LackOfMemory('exceeded'))),
    watchScratch(keepFree, () => end(diskFull())),
  ];
  child.stdin?.on('error', () => {});
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-4_000);
  });
  try {
    await input;
    timer = setTimeout(() => end(tooSlow(seconds)), Math.min(seconds * 1_000, MAX_TIMER_MS));
    child.stdin?.write(`${JSON.stringify({ ...request, memory })}\n`);
    const answer = await readAnswer(child.stdout, options.onProgress);
    child.stdin?.end();
    await ended;
    if (reason !== undefined) throw reason;
    if (!answer && child.signalCode === 'SIGKILL') throw new LackOfMemory('killed');
    if (!answer && isStopSignal(child.signalCode)) {
      await throwIfWorkerStops(signal);
      throw stopped(child.signalCode);
    }
    return toResult(answer, { memory, stderr });
  } finally {
    clearTimeout(timer);
    for (const watch of watches) clearInterval(watch);
    signal.removeEventListener('abort', onAbort);
    child.kill('SIGKILL');
    await ended;
  }
}

function toResult(
  answer: LastAnswer | undefined,
  { memory, stderr }: { memory: number; stderr: string },
): Made[keyof Made] {
  if (!answer && saysUnloadable(stderr)) throw unloadable(stderr);
  // V8 aborted the child at its heap limit.
  if (!answer)
    throw /heap out of memory|^$/.test(stderr)
      ? tooLarge(memory)
      : new Error(`the table process exited: ${stderr}`);
  if ('made' in answer) return answer.made;
  if ('refused' in answer) {
    const { problems, count, hint } = answer.refused;
    const [first = { reason: 'it cannot be read' }] = problems;
    throw new TableError({ ...first, hint }, { problems, count });
  }
  if (answer.failed === 'memory') throw new LackOfMemory(answer.hadMost ? 'most' : 'refused');
  if (answer.failed === 'disk') throw diskFull(answer.message);
  if (answer.failed === 'modules') throw unloadable(answer.message);
  throw new Error(`a table could not be made: ${answer.message}`);
}

const unloadable = (why: string) =>
  new UnloadableProgram(`the table process could not load its modules: ${why}`);

function tooLarge(memory: number): WindlassError {
  return new WindlassError('parse_failed', {
    detail: `the table needs more than ${memory} bytes of memory.`,
    hint: 'Split the table by columns or rows. LIMIT_PARSE_BYTES sets the limit.',
  });
}

function stopped(by: string | null): WindlassError {
  return new WindlassError('parse_failed', {
    detail: `${by} ended the process that parses.`,
    hint: 'Another program of its machine sent the signal, for example to free memory. Free some, or split the table.',
  });
}

function tooSlow(seconds: number): WindlassError {
  return new WindlassError('time_limit', {
    detail: `the table was not made within ${seconds} s.`,
    hint: 'Split the table. LIMIT_PARSE_SECONDS sets the limit.',
  });
}
