import { setTimeout as delay } from 'node:timers/promises';
import { type Api, unwrap } from '../../../clients/typescript/src/api.ts';
import { CommandError } from '../../command-error.ts';
import { countOf } from '../../output/count-of.ts';
import { printDone, printRecords } from '../../output/print-records.ts';
import { ProgressLine } from '../../output/progress.ts';
import { formatAge } from '../../output/table.ts';
import { connect, connectByPassword, type PasswordOptions } from '../connect.ts';

/** A little longer than workers take to tell of themselves, and to claim what they have been offered. */
const LOOK_MS = 4_000;

/** `windlass worker list` */
export async function listWorkers({ json }: { json?: boolean }): Promise<void> {
  const { api } = await connect();
  const { items } = await unwrap(api.GET('/api/workers'));
  await printRecords(items, {
    columns: {
      ID: ({ id }) => id,
      HOST: ({ host }) => host,
      STATE: ({ draining }) => (draining ? 'draining' : 'working'),
      RUNNING: ({ running }) => String(running),
      UP: ({ started }) => formatAge(started),
      SEEN: ({ seen }) => formatAge(seen),
      KINDS: ({ kinds }) => kinds.join(' '),
    },
    json,
  });
}

interface DrainOptions extends PasswordOptions {
  wait?: boolean;
  /** Seconds. */
  timeout?: number;
  json?: boolean;
}

/** `windlass worker drain` and `resume` */
export async function setDraining(
  id: string,
  draining: boolean,
  options: DrainOptions,
): Promise<void> {
  const { wait = false, timeout } = options;
  if (timeout !== undefined && !wait)
    throw new CommandError('--timeout belongs to --wait.', { hint: 'Give both.' });
  const { api } = await connectByPassword(options);
  const params = { path: { id } };
  const worker = await unwrap(api.PUT('/api/workers/{id}', { params, body: { draining } }));
  const left = wait ? await untilIdle(api, id, timeout) : worker.running;
  await printDone({ ...worker, running: left }, options);
}

/**
 * Waits until the worker has no job, or is gone. Returns the number of its jobs. It hears of the drain within LOOK_MS, and may
 * then still claim what it was just given: so two looks in a row must find no job.
 */
async function untilIdle(api: Api, id: string, timeout = Number.POSITIVE_INFINITY) {
  const until = performance.now() + timeout * 1_000;
  const line = new ProgressLine();
  let idleLooks = 0;
  try {
    for (;;) {
      const { items } = await unwrap(api.GET('/api/workers'));
      const worker = items.find(each => each.id === id);
      if (!worker) return 0;
      if (!worker.draining)
        throw new CommandError(`Somebody let ${id} work again.`, { hint: 'Drain it again.' });
      idleLooks = worker.running === 0 ? idleLooks + 1 : 0;
      if (idleLooks === 2) return 0;
      if (performance.now() >= until)
        throw new CommandError(
          `${id} has ${countOf(worker.running, 'job')} after ${timeout} s, and takes no more.`,
          { hint: 'Wait again: windlass worker drain ID --wait.' },
        );
      line.showText(`${countOf(worker.running, 'job')} left`, true);
      await delay(Math.min(LOOK_MS, Math.max(0, until - performance.now())));
    }
  } finally {
    line.end();
  }
}
