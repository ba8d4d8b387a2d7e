import { setMaxListeners } from 'node:events';
import { ConfigError } from './config.ts';
import type { Logger } from './log.ts';

/** What every program of Windlass does about itself: its title, its end, its word that it is ready. */
export interface ProcessLifecycle {
  /** Aborted when the process is asked to stop, by a signal or because its supervisor is gone. */
  stopping: AbortSignal;
  /** Resolves when it is. */
  stopped: Promise<void>;
  ready(): void;
}

export function beginProcess(title: string): ProcessLifecycle {
  process.title = title;
  const stop = new AbortController();
  // Every job and every held request listens to it.
  setMaxListeners(0, stop.signal);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort(signal));
  if (process.channel) {
    // The supervisor died without a word: nobody would restart or stop this process.
    process.on('disconnect', () => stop.abort('disconnect'));
    process.channel.unref();
  }
  const stopped = new Promise<void>(resolve => {
    stop.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  return { stopping: stop.signal, stopped, ready: () => process.send?.({ type: 'ready' }) };
}

/** An error that nobody caught ends the process with one line of its log, where secrets are cut out, and not in Node's own words. */
export function exitOnUncaughtError(log: Logger): void {
  process.on('uncaughtException', error => {
    log.fatal({ err: error }, 'ended by an unforeseen error');
    process.exit(1);
  });
}

/** Ends the process with one line that says what to do. */
export function exitWith(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** Ends the process where it was given bad settings, with a line for each; otherwise it returns. */
export function exitOnBadSettings(error: unknown): void {
  if (error instanceof ConfigError)
    exitWith(error.problems.map(problem => `windlass: ${problem}`).join('\n'));
}
