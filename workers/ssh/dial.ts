import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { WindlassError } from '../../shared/errors/errors.ts';

/**
 * Opens a TCP connection within `timeoutMs`: the kernel would try for minutes, and notice late that a host is back.
 * Throws `remote_connection_failed` or the signal's reason.
 */
export async function dial(
  at: { address: string; port: number; timeoutMs: number },
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const { address: host, port, timeoutMs } = at;
  const socket = connect({ host, port, noDelay: true });
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    await once(socket, 'connect', { signal: AbortSignal.any([signal, timeout]) });
    return socket;
  } catch (error) {
    socket.on('error', () => {}).destroy();
    signal.throwIfAborted();
    if (timeout.aborted) throw unreachable(at, `no connection within ${timeoutMs / 1_000} s.`);
    throw unreachable(at, `${(error as Error).message}.`, error);
  }
}

/** The cause of an error if the host accepted a connection and closed it before the login. */
export class DroppedBeforeLogin extends Error {
  /** Whether it closed before it showed its key: then it knows nothing of the user. */
  readonly isUnseen: boolean;

  constructor(message: string, { isUnseen = false } = {}) {
    super(message);
    this.isUnseen = isUnseen;
  }
}

/** The cause of an error if a login failed once the host had its credential: that tells nothing of other accounts. */
export class FailedAfterCredential extends Error {}

/** The error of a host that cannot be reached, or whose SSH server does not answer. */
export function unreachable(
  { address, port }: { address: string; port: number },
  why: string,
  cause?: unknown,
): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: `${address}:${port}: ${why}`,
    hint: 'Check that the host is up and that its SSH server can be reached from the workers.',
    cause,
  });
}
