import { spawn } from 'node:child_process';

/** Runs a command on standard error's behalf; undefined when it succeeded, else how it ended. */
export async function runCommand({ root, command, args }) {
  // Standard output belongs to the program that is run afterwards.
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  const passed = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  let stopped;
  const pass = signal => {
    stopped = signal;
    child.kill(signal);
  };
  for (const signal of passed) process.on(signal, pass);
  const problem = await new Promise(settle => {
    child.once('error', error => settle(`could not be started (${error.message})`));
    child.once('exit', (code, signal) =>
      settle(code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`),
    );
  });
  for (const signal of passed) process.off(signal, pass);
  return stopped === undefined ? problem : `was stopped by ${stopped}`;
}
