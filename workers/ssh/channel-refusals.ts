import { WindlassError } from '../../shared/errors/errors.ts';

/** A server may refuse new channels for so long although none is open, because it needs a moment to close one. */
const GRACE_MS = 3_000;

/** Runs from the first refusal of a server on which no channel is open. */
export class RefusalGrace {
  #until: number | undefined;

  reset(): void {
    this.#until = undefined;
  }

  isOver(): boolean {
    this.#until ??= performance.now() + GRACE_MS;
    return performance.now() > this.#until;
  }
}

export function channelRefused(cause: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The host refuses to open a channel.',
    hint: "Check MaxSessions in the host's sshd_config.",
    cause,
  });
}

/** A retry would not help: the agent keeps its channel as long as the connection lasts. */
export function channelRefusedBesideAgent(cause: unknown): WindlassError {
  return new WindlassError('agent_problem', {
    detail: "Remote agent problem: the host opens no channel beside the agent's.",
    hint: 'Raise MaxSessions in the host\'s sshd_config, or open a session with "agent": false.',
    cause,
  });
}
