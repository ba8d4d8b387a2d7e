import type { JobEvent } from '@windlass/client';
import { followJob, readOutput } from '../service/output.ts';
import { BLOCK_BYTES } from './byte-blocks.ts';
import type { Missing, OutputLog } from './output-log.ts';

/** The page gets a turn after so many ms of work. */
const TURN_MS = 8;

interface FeedOptions {
  signal: AbortSignal;
  /** Lines came, or bytes that were read again. */
  onChange: () => void;
  /** What is told of the job beside its output. */
  onEvent?: (event: JobEvent) => void;
  /** Why bytes could not be read again; undefined once they were, or nobody looks at them any more. */
  onMissed: (error: unknown) => void;
}

/** After bytes that could not be read again. */
const AGAIN_MS = 5_000;
/** Within this time who looks at them asks for them. */
const LOOK_MS = 1_000;

/** Fills the log with what a job prints, from where it is to the job's end, over any number of connections. */
export async function feedLog(
  job: string,
  log: OutputLog,
  { signal, onChange, onEvent, onMissed }: FeedOptions,
): Promise<void> {
  const asked = new Set<string>();
  onMissed(undefined);
  log.onMissing = missing => {
    const key = `${missing.stream} ${missing.block}`;
    if (asked.has(key)) return;
    asked.add(key);
    readAgain(job, missing, signal)
      .then(bytes => {
        asked.delete(key);
        log.restore(missing, bytes);
        onMissed(undefined);
        onChange();
      })
      .catch(async error => {
        if (signal.aborted) return;
        onMissed(error);
        await sleep(AGAIN_MS);
        asked.delete(key);
        if (signal.aborted) return;
        onChange();
        // The error stays while the bytes are looked at: it would appear and vanish with each attempt.
        await sleep(LOOK_MS);
        if (!signal.aborted && asked.size === 0) onMissed(undefined);
      });
  };
  onChange();
  let turn = performance.now();
  const from = { stdout: log.bytesOf('stdout'), stderr: log.bytesOf('stderr') };
  for await (const event of followJob(job, { signal, from })) {
    if (event.event === 'output') {
      log.append(event.stream, event.bytes, event.time);
      onChange();
    } else onEvent?.(event);
    if (performance.now() - turn < TURN_MS) continue;
    await nextTurn();
    turn = performance.now();
  }
  log.isWhole = true;
  onChange();
}

/** A block that was dropped because there was too much. */
async function readAgain(
  job: string,
  { stream, block }: Missing,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const offset = block * BLOCK_BYTES;
  const bytes = await readOutput(job, { stream, offset, limit: BLOCK_BYTES }, signal);
  if (bytes.length === BLOCK_BYTES) return bytes;
  throw new Error(`The output ends at ${offset + bytes.length}.`);
}

const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

/** Lets the page's other work run; a timer would wait for 4 ms. */
const nextTurn = (): Promise<void> =>
  new Promise(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve();
    port2.postMessage(undefined);
  });
