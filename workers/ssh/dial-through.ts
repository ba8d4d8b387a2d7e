import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Transport } from './limit-login.ts';

/** RFC 4254, 5.1: the server does not want to. */
const ADMINISTRATIVELY_PROHIBITED = 1;

/**
 * Makes a jump host open a TCP connection to the next host, which it resolves (RFC 4254, 7.2), within `timeoutMs`.
 * Throws `remote_connection_failed` or the signal's reason.
 */
export function dialThrough(
  via: { client: ssh2.Client; name: string },
  at: { address: string; port: number; timeoutMs: number },
  signal: AbortSignal,
): Promise<Transport> {
  const { address, port, timeoutMs } = at;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    let isSettled = false;
    const settle = (then: () => void) => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      then();
    };
    const fail = (why: string, hint?: string) =>
      settle(() => reject(notConnected(`${address}:${port}: ${why}`, { via: via.name, hint })));
    const abort = () => settle(() => reject(signal.reason));
    const late = () =>
      fail(`the jump host ${via.name} made no connection within ${timeoutMs / 1_000} s.`);
    const timer = setTimeout(late, timeoutMs);
    signal.addEventListener('abort', abort, { once: true });
    const onOpened: ssh2.ClientCallback = (error, channel) => {
      if (!error && isSettled) return void channel.on('error', () => {}).destroy();
      if (!error) return settle(() => resolve(toTransport(channel)));
      if ((error as { reason?: number }).reason === ADMINISTRATIVELY_PROHIBITED)
        return fail(
          `the jump host ${via.name} lets this account connect to no further host.`,
          'Have AllowTcpForwarding and PermitOpen of its sshd_config allow it.',
        );
      fail(`the jump host ${via.name} could not connect (${error.message}).`);
    };
    try {
      via.client.forwardOut('127.0.0.1', 0, address, port, onOpened);
    } catch (error) {
      fail(`the connection to the jump host ${via.name} is lost (${(error as Error).message}).`);
    }
  });
}

const notConnected = (detail: string, { via, hint }: { via: string; hint?: string }) =>
  new WindlassError('remote_connection_failed', {
    detail,
    hint: hint ?? `Check that the host is up and that its SSH server can be reached from ${via}.`,
  });

/**
 * Makes a channel behave like a socket: it closes when the other side ends, and counts received bytes, which ssh2
 * pushes.
 */
function toTransport(channel: ssh2.Channel): Transport {
  channel.once('end', () => channel.destroy());
  let bytesRead = 0;
  const push = channel.push.bind(channel);
  channel.push = (bytes: Buffer | null) => {
    bytesRead += bytes?.length ?? 0;
    return push(bytes);
  };
  return Object.defineProperty(channel, 'bytesRead', {
    get: () => bytesRead,
  }) as unknown as Transport;
}
