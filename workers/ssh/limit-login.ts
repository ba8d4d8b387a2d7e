import type { Duplex } from 'node:stream';
import type ssh2 from 'ssh2';

/** What a connection goes over: a socket, or a channel of another connection. */
export type Transport = Duplex & { readonly bytesRead: number };

/** What a server may send before the login is done. ssh2 itself reads, and partly keeps, whatever comes. */
const MAX_LOGIN_BYTES = 1_000_000;

/** Calls `onExcess` where the server sends too much before the client is logged in. Its connection is closed then. */
export function limitLogin(
  client: ssh2.Client,
  transport: Transport,
  onExcess: (error: Error) => void,
) {
  const check = () => {
    if (transport.bytesRead <= MAX_LOGIN_BYTES) return;
    stop();
    transport.destroy();
    onExcess(new Error('the host sent more than 1 MB before the login'));
  };
  const stop = () => transport.off('data', check);
  // Before ssh2's own listener sees the bytes.
  transport.prependListener('data', check);
  client.once('ready', stop);
}
