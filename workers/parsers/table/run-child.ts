import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { WindlassError } from '../../../shared/errors.ts';
import { packageRoot } from '../../../shared/package-root.ts';
import { diskFull } from '../../sandbox/scratch-dir.ts';
import { type MadeTable, type TableAnswer, TableError, type TableRequest } from './protocol.ts';

/** Also when the caller runs from the sources: Node 20 cannot run TypeScript, so the child is always the compiled one. */
const PROGRAM = fileURLToPath(new URL('dist/workers/parsers/table/child.js', packageRoot));
/** How often the child's memory is looked at: DuckDB takes some 100 MB in 50 ms when it is at its fastest. */
const WATCH_MS = 25;
/** Linux counts pages; other page sizes than this only make the limit larger. */
const PAGE_BYTES = 4_096;
/** A child that others kill is started again, so often in all. */
const TRIES = 3;
/** V8's own share of the limit. */
const HEAP_MB = 96;

type Unlimited<T> = T extends TableRequest ? Omit<T, 'memory'> : never;

export interface RunOptions {
  /** Bytes that the child may use. */
  memory: number;
  seconds: number;
  onProgress(share: number): void;
  signal: AbortSignal;
}

/**
 * Has a child read or make a table. Throws TableError for what is wrong with the file, WindlassError `parse_failed`,
 * `time_limit` or `insufficient_storage` where a limit was met, and the signal's reason. Settles when the child is gone.
 */
export async function runTableChild(
  request: Unlimited<TableRequest>,
  options: RunOptions,
): Promise<MadeTable> {
  for (let tries = 1; ; tries++) {
    try {
      return await runOnce(request, options);
    } catch (error) {
      if (!(error instanceof KilledByOthers)) throw error;
      // By a person once perhaps; again and again by a system that has no memory left.
      if (tries === TRIES) throw tooLarge(options.memory);
    }
  }
}

/** The child was killed, and not by us. */
class KilledByOthers extends Error {}

async function runOnce(request: Unlimited<TableRequest>, options: RunOptions): Promise<MadeTable> {
  const { memory, seconds, signal } = options;
  signal.throwIfAborted();
  const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, PROGRAM], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // glibc keeps freed memory in an arena a thread; its tuning is by environment alone.
    env: {
      MALLOC_ARENA_MAX: '2',
      UV_THREADPOOL_SIZE: String(Math.min(4, availableParallelism() + 1)),
    },
  });
  const ended = new Promise<void>(resolve => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  let reason: unknown;
  const end = (why: unknown) => {
    reason ??= why;
    child.kill('SIGKILL');
  };
  const onAbort = () => end(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => end(tooSlow(seconds)), Math.min(seconds * 1_000, 2 ** 31 - 1));
  const watch = watchMemory(child, memory, () => end(tooLarge(memory)));
  child.stdin?.on('error', () => {});
  child.stdin?.write(`${JSON.stringify({ ...request, memory })}\n`);
  try {
    const { answer, stderr } = await readAnswer(child, options);
    child.stdin?.end();
    await ended;
    if (reason !== undefined) throw reason;
    if (!answer && child.signalCode === 'SIGKILL') throw new KilledByOthers();
    return settle(answer, { memory, stderr });
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    signal.removeEventListener('abort', onAbort);
    child.kill('SIGKILL');
    await ended;
  }
}

type LastAnswer = Exclude<TableAnswer, { progress: number }>;

async function readAnswer(
  child: ChildProcess,
  { onProgress }: RunOptions,
): Promise<{ answer: LastAnswer | undefined; stderr: string }> {
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-4_000);
  });
  if (!child.stdout) return { answer: undefined, stderr };
  for await (const line of createInterface({ input: child.stdout, crlfDelay: Infinity })) {
    const answer = JSON.parse(line) as TableAnswer;
    if ('progress' in answer) onProgress(answer.progress);
    else return { answer, stderr };
  }
  return { answer: undefined, stderr };
}

function settle(
  answer: LastAnswer | undefined,
  { memory, stderr }: { memory: number; stderr: string },
): MadeTable {
  // Ended by V8 at the limit of its heap.
  if (!answer)
    throw /heap out of memory|^$/.test(stderr)
      ? tooLarge(memory)
      : new Error(`the table child ended: ${stderr}`);
  if ('made' in answer) return answer.made;
  if ('refused' in answer) {
    const { problems, count, hint } = answer.refused;
    const [first = { reason: 'it cannot be read' }] = problems;
    throw new TableError({ ...first, hint }, { problems, count });
  }
  if (answer.failed === 'memory') throw tooLarge(memory);
  if (answer.failed === 'disk') throw diskFull(answer.words);
  throw new Error(`a table could not be made: ${answer.words}`);
}

/** Where there is a /proc, the child is ended as soon as it uses more than it may. */
function watchMemory(child: ChildProcess, limit: number, onExceeded: () => void): NodeJS.Timeout {
  return setInterval(() => {
    void readFile(`/proc/${child.pid}/statm`, 'latin1').then(
      statm => {
        if (Number(statm.split(' ')[1]) * PAGE_BYTES > limit) onExceeded();
      },
      () => {},
    );
  }, WATCH_MS);
}

function tooLarge(memory: number): WindlassError {
  return new WindlassError('parse_failed', {
    detail: `The upload cannot be parsed: the table needs more than ${memory} bytes of memory.`,
    hint: 'Split the table by columns or rows. LIMIT_PARSE_BYTES sets the limit.',
  });
}

function tooSlow(seconds: number): WindlassError {
  return new WindlassError('time_limit', {
    detail: `Time limit reached: the table was not made within ${seconds} s.`,
    hint: 'Split the table. LIMIT_PARSE_SECONDS sets the limit.',
  });
}
