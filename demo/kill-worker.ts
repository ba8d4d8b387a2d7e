import { setTimeout as delay } from 'node:timers/promises';
import { signalProcess } from '../servers/processes.ts';
import { dim, expect, red } from './console.ts';
import type { Demo } from './demo.ts';

interface Held {
  state: string;
  worker: string | null;
}

/** Short: what is to be killed may take less than a second. Long enough for LIMIT_REQUESTS. */
const POLL_MS = 5;

/**
 * Kills the worker that holds the job with -9, as soon as one holds it. False when the job had ended before.
 */
export async function killWorker({ client, out }: Demo, job: string): Promise<boolean> {
  for (;;) {
    const { state, worker } = await client.get<Held>(`/api/jobs/${job}`);
    if (state !== 'queued' && state !== 'running') return false;
    if (!worker) {
      await delay(POLL_MS);
      continue;
    }
    const pid = Number(worker.split('/')[1]);
    expect(Number.isInteger(pid) && pid > 1, `the worker's name holds no process id: ${worker}`);
    signalProcess(pid, 'SIGKILL');
    out.note(
      `${red(`kill -9 ${pid}`)} ${dim('the worker that holds the job; another takes it up when its lease ends, within 10 s')}`,
    );
    return true;
  }
}
