import { setMaxListeners } from 'node:events';
import type { Logger } from '../process/log.ts';
import { ConfigError } from '../settings/config.ts';

/** The life of a process: readiness, and the request to stop. */
export interface ProcessLifecycle {
  /** Aborted when the process is asked to stop, by a signal or because its supervisor is gone. */
  stopping: AbortSignal;
  /** Resolves at the same time. */
  stopped: Promise<void>;
  /** Reports readiness to the supervisor. */
  ready(): void;
}

export function beginProcess(title: string): ProcessLifecycle {
  process.title = title;
  const stop = new AbortController();
  // Every job and every waiting request listens to it.
  setMaxListeners(0, stop.signal);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort(signal));
  if (process.channel) {
    // The supervisor died: nothing would restart or stop this process.
    process.on('disconnect', () => stop.abort('disconnect'));
    process.channel.unref();
  }
  const stopped = new Promise<void>(resolve => {
    stop.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  return { stopping: stop.signal, stopped, ready: () => process.send?.({ type: 'ready' }) };
}

/** Makes an uncaught error end the process with a line of its log, from which secrets are removed. */
export function exitOnUncaughtError(log: Logger): void {
  process.on('uncaughtException', error => {
    log.fatal({ err: error }, 'exiting after an uncaught error');
    process.exit(1);
  });
}

/** Prints lines to standard error and ends the process with status 1. */
export function exitWith(...lines: string[]): never {
  process.stderr.write(lines.map(line => `windlass: ${line}\n`).join(''));
  process.exit(1);
}

/** Ends the process if the error is a ConfigError, with a line for each bad setting; otherwise returns. */
export function exitOnBadSettings(error: unknown): void {
  if (error instanceof ConfigError) exitWith(...error.problems);
}
