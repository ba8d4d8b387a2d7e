import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { WindlassError } from '../../shared/errors/errors.ts';

interface Destination {
  /** Of one name: each is tried until one answers. */
  addresses: string[];
  port: number;
  timeoutMs: number;
}

/**
 * Opens a TCP connection within `timeoutMs`: the kernel would try for minutes, and notice late that a host is back.
 * Throws `remote_connection_failed` or the signal's reason.
 */
export async function dial(
  { addresses, port, timeoutMs }: Destination,
  signal: AbortSignal,
): Promise<Socket> {
  const failures: Error[] = [];
  const ms = Math.round(timeoutMs / addresses.length);
  for (const address of addresses) {
    try {
      return await dialAddress({ address, port, ms }, signal);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error as Error);
    }
  }
  throw notReached(failures.map(({ message }) => message).join('; '), failures.at(-1)?.cause);
}

async function dialAddress(
  { address, port, ms }: { address: string; port: number; ms: number },
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ host: address, port, noDelay: true });
  const timeout = AbortSignal.timeout(ms);
  try {
    await once(socket, 'connect', { signal: AbortSignal.any([signal, timeout]) });
    return socket;
  } catch (error) {
    socket.on('error', () => {}).destroy();
    const why = timeout.aborted ? `no connection within ${ms / 1_000} s` : (error as Error).message;
    throw new Error(`${address}:${port}: ${why}`, { cause: timeout.aborted ? undefined : error });
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
export const unreachable = (
  { address, port }: { address: string; port: number },
  why: string,
  cause?: unknown,
): WindlassError => notReached(`${address}:${port}: ${why}`, cause);

const notReached = (why: string, cause: unknown) =>
  new WindlassError('remote_connection_failed', {
    detail: why.endsWith('.') ? why : `${why}.`,
    hint: 'Check that the host is up and that its SSH server can be reached from the workers.',
    cause,
  });
