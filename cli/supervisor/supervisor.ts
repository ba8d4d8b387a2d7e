import type { Logger } from '../../shared/log.ts';
import { listenForForceQuit } from './force-quit.ts';
import { startReaper } from './reaper.ts';
import { keepProcess, type ProcessSpec, type SupervisedProcess } from './supervised-process.ts';

export type { ProcessSpec } from './supervised-process.ts';

const GRACE_MS = 30_000;

export interface SuperviseOptions {
  /** Started together; stopped group after group, in this order. */
  groups: ProcessSpec[][];
  log: Logger;
  /** Aborted: everything is stopped. */
  signal: AbortSignal;
  /** Aborted: what has not stopped by now is killed. Default: a second SIGINT or SIGTERM does so. */
  forceQuit?: AbortSignal;
  /** How long a group may take to stop, in ms (30 s). */
  graceMs?: number;
  /** Called whenever a process is ready. */
  onReady?(name: string, pid: number | undefined): void;
}

export interface Supervisor {
  /** Resolves once, when all processes have been ready at the same time; never if stopped before. */
  ready: Promise<void>;
  /** Resolves when the signal was aborted and every process is gone. */
  stopped: Promise<void>;
}

/**
 * Runs processes and starts again what ends, within 2 s, or with delays that grow to 20 s where one
 * dies again and again before it was ready. When this process dies, all of them are gone within 3 s.
 */
export function supervise(options: SuperviseOptions): Supervisor {
  const { log, signal, forceQuit = listenForForceQuit(signal), graceMs = GRACE_MS } = options;
  if (signal.aborted) return { ready: new Promise(() => {}), stopped: Promise.resolve() };
  const reaper = startReaper(log);
  const groups: SupervisedProcess[][] = [];

  const ready = new Promise<void>(resolve => {
    const onReady = (name: string, pid: number | undefined) => {
      log.debug({ process: name, pid }, 'A process is ready');
      options.onReady?.(name, pid);
      if (!signal.aborted && groups.flat().every(one => one.ready)) resolve();
    };
    for (const group of options.groups) {
      groups.push(group.map(spec => keepProcess({ spec, log, reaper, onReady })));
    }
  });
  const stopped = new Promise<void>(resolve => {
    signal.addEventListener('abort', () => resolve(stopInOrder()), { once: true });
  });
  const stopInOrder = async () => {
    for (const group of groups) {
      await Promise.all(group.map(one => one.stop({ graceMs, forceQuit })));
    }
    reaper.close();
  };
  return { ready, stopped };
}
