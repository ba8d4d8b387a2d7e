import { connect, type Socket } from 'node:net';
import { WindlassError } from '../../shared/errors.ts';

/**
 * Opens a TCP connection within `timeoutMs`. Without that limit a host that drops packets would take minutes, and the
 * kernel's own retries reach a host that comes back only late. Throws `remote_connection_failed` or the signal's reason.
 */
export function dial(
  at: { address: string; port: number; timeoutMs: number },
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const { address: host, port, timeoutMs } = at;
    const socket = connect({ host, port, noDelay: true });
    const settle = (act: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      socket.off('error', onError);
      act();
    };
    const fail = (error: unknown) =>
      settle(() => {
        socket.on('error', () => {}).destroy();
        reject(error);
      });
    const onAbort = () => fail(signal.reason);
    const onError = (cause: Error) => fail(unreachable(at, `${cause.message}.`, cause));
    const timer = setTimeout(
      () => fail(unreachable(at, `no connection within ${timeoutMs / 1_000} s.`)),
      timeoutMs,
    );
    signal.addEventListener('abort', onAbort);
    socket.once('error', onError);
    socket.once('connect', () => settle(() => resolve(socket)));
  });
}

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
