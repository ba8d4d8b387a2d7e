import { format } from 'node:util';
import type { Logger } from './log.ts';

/** Makes lines of the log of what packages print to the console, and of Node's warnings: it is JSON throughout. */
export function logWarnings(log: Logger): void {
  console.warn = (...given: unknown[]) => log.warn(format(...given));
  console.error = (...given: unknown[]) => log.error(format(...given));
  // Node's own listener prints them.
  process.removeAllListeners('warning');
  process.on('warning', warning => log.warn({ err: warning }, 'a warning of Node'));
}
