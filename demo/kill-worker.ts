import { setTimeout as delay } from 'node:timers/promises';
import { signalProcess } from '../servers/processes.ts';
import { pidOfWorker } from '../shared/jobs/worker-id.ts';
import { dim, expect, red } from './console.ts';
import type { DemoContext } from './context.ts';

interface Job {
  state: string;
  worker: string | null;
}

/** Short, because the job may take less than a second, but within LIMIT_REQUESTS. */
const POLL_MS = 5;

/** Sends SIGKILL to the worker of the job as soon as it has one. False if the job ended before. */
export async function killWorker({ client, out }: DemoContext, job: string): Promise<boolean> {
  for (;;) {
    const { state, worker } = await client.get<Job>(`/api/jobs/${job}`);
    if (state !== 'queued' && state !== 'running') return false;
    if (!worker) {
      await delay(POLL_MS);
      continue;
    }
    const pid = pidOfWorker(worker);
    expect(Number.isInteger(pid) && pid > 1, `the worker's name holds no process id: ${worker}`);
    signalProcess(pid, 'SIGKILL');
    out.note(
      `${red(`kill -9 ${pid}`)} ${dim('the worker of the job; another one claims it when the lease expires, within 10 s')}`,
    );
    return true;
  }
}
