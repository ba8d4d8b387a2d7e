import { spawn } from 'node:child_process';

/** Runs a command with its output on standard error. Returns undefined if it succeeds, otherwise how it ended. */
export async function runCommand({ root, command, args }) {
  // Standard output is reserved for the program that runs afterwards.
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  let stopped;
  const forward = signal => {
    stopped = signal;
    child.kill(signal);
  };
  for (const signal of forwarded) process.on(signal, forward);
  const problem = await new Promise(settle => {
    child.once('error', error => settle(`could not be started (${error.message})`));
    child.once('exit', (code, signal) =>
      settle(code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`),
    );
  });
  for (const signal of forwarded) process.off(signal, forward);
  return stopped === undefined ? problem : `was stopped by ${stopped}`;
}
