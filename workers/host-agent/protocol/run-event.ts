import { WindlassError } from '../../../shared/errors.ts';

const LOST_CAUSES = ['reboot', 'session_killed', 'no_heartbeat'] as const;
export type LostCause = (typeof LOST_CAUSES)[number];

export type RunEvent =
  | { type: 'running' }
  /** No attempt has started it: it is safe to run. */
  | { type: 'absent' }
  /** Another attempt has the fence: follow that one. */
  | { type: 'taken' }
  /** Bytes of one stream from this offset on, in order and without gaps. */
  | { type: 'output'; stream: 'stdout' | 'stderr'; offset: number; bytes: Buffer }
  /** Comes after all output. code is the exit status, 128 + n for signal n; with diskFull it is unknown: -1. */
  | { type: 'ended'; code: number; stdoutBytes: number; stderrBytes: number; diskFull: boolean }
  /** It was stopped before it ever started, and never will. */
  | { type: 'stopped' }
  /**
   * It started and its end will never be known. cause, if known: `reboot` (of the host), `session_killed` (all
   * that its connection had started was killed with it), `no_heartbeat` (of its node).
   */
  | { type: 'lost'; cause?: LostCause };

/** Parses a line of the agent about a run. */
export function toEvent(verb: string, rest: string[]): RunEvent {
  switch (verb) {
    case 'ended': {
      const [code = '', stdoutBytes, stderrBytes] = rest;
      return {
        type: 'ended',
        code: code === 'full' ? -1 : Number(code),
        stdoutBytes: Number(stdoutBytes),
        stderrBytes: Number(stderrBytes),
        diskFull: code === 'full',
      };
    }
    case 'lost': {
      const cause = LOST_CAUSES.find(known => known === rest[0]);
      return cause ? { type: verb, cause } : { type: verb };
    }
    case 'running':
    case 'absent':
    case 'taken':
    case 'stopped':
      return { type: verb };
    default:
      throw new Error(`The agent sent ${JSON.stringify(verb)}.`);
  }
}

export function toStartError(reason: string | undefined): WindlassError {
  return reason === 'full'
    ? new WindlassError('remote_disk_full', { detail: 'there is no space to start the command.' })
    : new WindlassError('agent_problem', { detail: `the command was not started (${reason}).` });
}
