import { WindlassError } from '../../shared/errors/errors.ts';

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
    detail: "the host opens no channel beside the agent's.",
    hint: 'Raise MaxSessions in the host\'s sshd_config, or open a session with "agent": false.',
    cause,
  });
}

/** No channel becomes free: each one was given up. */
export const channelsHang = (count: number) =>
  new WindlassError('remote_connection_failed', {
    detail: `The host does not close ${count} channels, and opens no more.`,
    hint: 'Programs hang there, such as on a disk that does not answer. Try again, or log in again.',
  });
