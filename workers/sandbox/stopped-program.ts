import { WindlassError } from '../../shared/errors/errors.ts';

/**
 * Runners and terminals send these to a worker's programs too (systemd by default, Ctrl-C), while the worker goes on
 * until its jobs are released.
 */
const STOP_SIGNALS = new Set<NodeJS.Signals | null>(['SIGTERM', 'SIGINT', 'SIGHUP']);

export const isStopSignal = (signal: NodeJS.Signals | null) => STOP_SIGNALS.has(signal);

/**
 * A program was told to stop from outside. Its file is not to blame, and the job is done again; as after a lost worker,
 * at most 20 times in a row, since what frees memory of a machine may send these signals too.
 */
export class StoppedProgram extends WindlassError {
  constructor(program: string) {
    super('unavailable', {
      detail: `${program} was stopped by a signal`,
      hint: 'The job is done again.',
      headers: { 'Retry-After': '2' },
    });
  }
}
