import { WindlassError } from '../../shared/errors.ts';

/** A server needs a moment to be done with a channel that has closed: refusals count where nothing else is open for so long. */
const REFUSED_FOR_MS = 3_000;

/** With a server that refuses channels though none is open, from its first refusal on. */
export class Patience {
  #until: number | undefined;

  renew(): void {
    this.#until = undefined;
  }

  hasEnded(): boolean {
    this.#until ??= performance.now() + REFUSED_FOR_MS;
    return performance.now() > this.#until;
  }
}

export function noChannel(cause: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The host refuses to open a channel.',
    hint: "Check MaxSessions in the host's sshd_config.",
    cause,
  });
}

/** Trying again does not help: its own channel is the agent's for as long as the connection lasts. */
export function noChannelBeside(cause: unknown): WindlassError {
  return new WindlassError('agent_problem', {
    detail: "Remote agent problem: the host opens no channel beside the agent's.",
    hint: 'Raise MaxSessions in the host\'s sshd_config, or open a session with "agent": false.',
    cause,
  });
}
