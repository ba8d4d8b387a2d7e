import { WindlassError } from '../../../shared/errors/errors.ts';

const LOST_CAUSES = ['reboot', 'session_killed', 'no_heartbeat'] as const;

/** What is known about the end of a run when a process of the agent was killed. */
export interface UnsureEnd {
  /** Undefined if the process that waited for the command was killed. */
  code?: number;
  /** Bytes of each stream that are complete. */
  stdout: number;
  stderr: number;
  /** Later bytes may be missing, even if none were spooled: a process that copied a stream was killed. */
  isCut: boolean;
  /** Bytes that were spooled. */
  stdoutBytes: number;
  stderrBytes: number;
}

export type LostCause = (typeof LOST_CAUSES)[number];

export type RunEvent =
  | { type: 'running' }
  /** No attempt has started it: it is safe to run. */
  | { type: 'absent' }
  /** Not started, because the account may have no more processes now: request it again later. */
  | { type: 'crowded' }
  /** Another attempt has the fence: follow that one. */
  | { type: 'taken' }
  /** Bytes of one stream from this offset on, in order and without gaps. */
  | { type: 'output'; stream: 'stdout' | 'stderr'; offset: number; bytes: Buffer }
  /** Comes after all output. code is the exit status, 128 + n for signal n; with diskFull it is unknown: -1. */
  | { type: 'ended'; code: number; stdoutBytes: number; stderrBytes: number; diskFull: boolean }
  /** It was stopped before it ever started, and never will. */
  | { type: 'stopped' }
  /**
   * It started, and its end will never be known. cause, if known: `reboot` of the host, `session_killed` (with all that
   * its connection had started), `no_heartbeat` of its node.
   */
  | { type: 'lost'; cause?: LostCause; unsure?: UnsureEnd };

/** Parses a line of the agent about a run. */
export function toEvent(verb: string, rest: string[]): RunEvent {
  switch (verb) {
    case 'ended': {
      const [code = '', stdoutBytes, stderrBytes] = rest;
      if (code.startsWith('unsure-')) return toUnsureEnd(rest);
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
    case 'crowded':
    case 'taken':
    case 'stopped':
      return { type: verb };
    default:
      throw new Error(`The agent sent ${JSON.stringify(verb)}.`);
  }
}

/** `unsure-CODE-OUT-ERR` or `unsure-CODE-OUT-ERR-cut`, and the bytes of both streams; CODE may be a hyphen itself. */
function toUnsureEnd([code = '', stdoutBytes, stderrBytes]: string[]): RunEvent {
  const [, status, stdout, stderr, cut] =
    /^unsure-(-|\d+|full)-(\d+)-(\d+)(-cut)?$/.exec(code) ?? [];
  const unsure: UnsureEnd = {
    stdout: Number(stdout),
    stderr: Number(stderr),
    isCut: cut !== undefined,
    stdoutBytes: Number(stdoutBytes),
    stderrBytes: Number(stderrBytes),
  };
  if (status && /^\d+$/.test(status)) unsure.code = Number(status);
  return { type: 'lost', unsure };
}

/** The reason is a word, after which come the host's. */
export function toStartError([reason, ...words]: string[]): WindlassError {
  if (reason === 'full')
    return new WindlassError('remote_disk_full', {
      detail: 'there is no space to start the command.',
    });
  if (reason === 'file_limit')
    return new WindlassError('remote_disk_full', {
      detail: 'the command, with its input, is larger than the files that the account may write.',
      hint: 'Raise `ulimit -f` of the account, or write the input to a file of several pieces.',
    });
  if (reason === 'unwritable')
    return new WindlassError('agent_problem', {
      detail: `the agent cannot write to .windlass in the account's home: ${words.join(' ')}`,
      hint: 'Have that made writable, or open the session with "agent": false.',
    });
  return new WindlassError('agent_problem', {
    detail: `the command was not started (${reason}).`,
  });
}
