import type { ChildProcess } from 'node:child_process';

/** For what is still in the pipes of a program that has exited. */
const DRAIN_MS = 1_000;

/**
 * Closes a program's pipes when it has exited: a process that it started, and that outlives it, would hold them, and `close` would
 * come when that process ends.
 */
export function closePipesAfterExit(program: ChildProcess): void {
  const close = () => {
    for (const pipe of program.stdio) pipe?.destroy();
  };
  program.once('exit', () => {
    // Not at once then: where this process was held up, what is in the pipes is read first.
    const timer = setTimeout(() => setImmediate(close), DRAIN_MS);
    program.once('close', () => clearTimeout(timer));
  });
}
