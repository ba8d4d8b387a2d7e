import { ERRORS, WindlassError } from '../../shared/errors.ts';

const LOST_CAUSES = ['reboot', 'all', 'far'] as const;
export type LostCause = (typeof LOST_CAUSES)[number];

export type RunEvent =
  | { type: 'running' }
  /** No attempt has started it: it is safe to run. */
  | { type: 'absent' }
  /** Another attempt holds the fence: follow it instead. */
  | { type: 'taken' }
  /** Bytes of one stream from offset on, in order and without gaps. */
  | { type: 'output'; stream: 'stdout' | 'stderr'; offset: number; bytes: Buffer }
  /** All output was sent before this. code is the exit status, 128 + n for signal n; with diskFull it is unknown: -1. */
  | { type: 'ended'; code: number; stdoutBytes: number; stderrBytes: number; diskFull: boolean }
  /** It was stopped before it ever started, and never will. */
  | { type: 'stopped' }
  /**
   * It started and its end will never be known. cause, where it shows: `reboot` (the host was started anew), `all`
   * (everything that its connection had started was killed with it), `far` (its node gives no sign of life).
   */
  | { type: 'lost'; cause?: 'reboot' | 'all' | 'far' };

/** What the agent says of a run, in words of its protocol. */
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
      throw new Error(`The agent said ${JSON.stringify(verb)}.`);
  }
}

export function explainFailure(reason: string | undefined): WindlassError {
  if (reason === 'full') {
    return new WindlassError('remote_disk_full', {
      detail: 'there is no room to start the command.',
    });
  }
  return new WindlassError('agent_problem', {
    detail: `${ERRORS.agent_problem.title.replace('.', '')}: the command was not started (${reason}).`,
  });
}
