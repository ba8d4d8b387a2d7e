import type { Logger } from '../../shared/process/log.ts';
import type { Secrets } from '../../shared/secrets/handed-secrets.ts';
import { listenForForcedShutdown } from './forced-shutdown.ts';
import { startReaper } from './reaper.ts';
import { type ProcessSpec, SupervisedProcess } from './supervised-process.ts';

/** Longer than a worker takes: workers/main.ts gives its jobs 28 s, and closing takes up to 3. */
const GRACE_MS = 35_000;

interface SuperviseOptions {
  /** All start at once; they stop group by group, in this order. */
  groups: ProcessSpec[][];
  log: Logger;
  /** Stops everything. */
  signal: AbortSignal;
  /** Kills what has not stopped. Default: aborted by a second SIGINT or SIGTERM. */
  forceShutdown?: AbortSignal;
  /** The time in which a group must stop, in ms (35 s). */
  graceMs?: number;
  /** Called whenever a process is ready. */
  onReady?(name: string, pid: number | undefined): void;
}

interface Supervisor {
  /** Resolves when all processes are ready at the same time; never if stopped before. */
  ready: Promise<void>;
  /** Resolves when every process has ended after the signal was aborted. */
  stopped: Promise<void>;
  /** Hands other secrets over to the processes of these names, and to those that follow them. */
  handOver(secrets: Record<string, Secrets | undefined>): void;
}

/**
 * Runs processes and restarts those that end: within 2 s, or with a backoff of up to 20 s if one dies repeatedly before it
 * is ready. When this process dies, all of them end within 3 s.
 */
export function supervise(options: SuperviseOptions): Supervisor {
  const { log, signal, graceMs = GRACE_MS } = options;
  const { forceShutdown = listenForForcedShutdown(signal) } = options;
  if (signal.aborted)
    return { ready: new Promise(() => {}), stopped: Promise.resolve(), handOver: () => {} };
  const reaper = startReaper(log);
  const groups: SupervisedProcess[][] = [];

  const ready = new Promise<void>(resolve => {
    const onReady = (name: string, pid: number | undefined) => {
      log.debug({ process: name, pid }, 'A process is ready');
      options.onReady?.(name, pid);
      if (!signal.aborted && groups.flat().every(one => one.isReady)) resolve();
    };
    for (const group of options.groups) {
      groups.push(group.map(spec => new SupervisedProcess({ spec, log, reaper, onReady })));
    }
  });
  const stopped = new Promise<void>(resolve => {
    signal.addEventListener('abort', () => resolve(stopInOrder()), { once: true });
  });
  const stopInOrder = async () => {
    for (const group of groups) {
      await Promise.all(group.map(one => one.stop({ graceMs, forceShutdown })));
    }
    reaper.close();
  };
  const handOver: Supervisor['handOver'] = secrets => {
    for (const one of groups.flat()) one.handOver(secrets[one.name] ?? {});
  };
  return { ready, stopped, handOver };
}
