import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Contender, IN_FLIGHT, type Servers } from './contender.ts';
import type { Work } from './windlass.ts';
import type { WorkerName } from './worker.ts';

const PROGRAM = fileURLToPath(new URL('./worker.js', import.meta.url));
const LOOK_MS = 10;

export async function startWorkers(
  name: WorkerName,
  servers: Servers,
  { processes, ...work }: Work & { processes: number },
): Promise<ChildProcess[]> {
  const started = Array.from({ length: processes }, async () => {
    const child = fork(PROGRAM, [name, JSON.stringify(servers), JSON.stringify(work)]);
    await once(child, 'message');
    return child;
  });
  return Promise.all(started);
}

export async function stopWorkers(workers: ChildProcess[]): Promise<void> {
  const exits = workers.map(worker => once(worker, 'exit'));
  for (const worker of workers) worker.disconnect();
  await Promise.all(exits);
}

/** Accepts so many jobs, each with a call of its own. */
async function acceptJobs(contender: Contender, count: number): Promise<void> {
  let left = count;
  const accept = async () => {
    while (left-- > 0) await contender.accept();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, accept));
}

export async function untilDrained(contender: Contender): Promise<void> {
  while (!(await contender.isDrained())) await delay(LOOK_MS);
}

/** Jobs a second, from the first that is accepted to the last that ends. */
export async function measureJobs(contender: Contender, count: number): Promise<number> {
  const began = performance.now();
  await acceptJobs(contender, count);
  await untilDrained(contender);
  return count / ((performance.now() - began) / 1_000);
}
