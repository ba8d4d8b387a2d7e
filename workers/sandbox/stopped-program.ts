import { unavailable, type WindlassError } from '../../shared/errors/errors.ts';

/**
 * Runners and terminals send these to a worker's programs too (systemd by default, Ctrl-C), while the worker goes on
 * until its jobs are released.
 */
const STOP_SIGNALS = new Set<NodeJS.Signals | null>(['SIGTERM', 'SIGINT', 'SIGHUP']);

export const isStopSignal = (signal: NodeJS.Signals | null) => STOP_SIGNALS.has(signal);

/** For a program that was told to stop from outside: its file is not to blame, and the job is done again. */
export const stoppedProgram = (program: string): WindlassError =>
  unavailable(`${program} was stopped by a signal`, 'The job is done again.', 2);
