import type { Socket } from 'node:net';
import type ssh2 from 'ssh2';

/** What a server may send before the login is done. ssh2 itself reads, and partly keeps, whatever comes. */
const MAX_LOGIN_BYTES = 1_000_000;

/** Calls `onExcess` where the server sends too much before the client is logged in. Its connection is closed then. */
export function limitLogin(client: ssh2.Client, socket: Socket, onExcess: (error: Error) => void) {
  const check = () => {
    if (socket.bytesRead <= MAX_LOGIN_BYTES) return;
    stop();
    socket.destroy();
    onExcess(new Error('the host sent more than 1 MB before the login'));
  };
  const stop = () => socket.off('data', check);
  // Before ssh2's own listener sees the bytes.
  socket.prependListener('data', check);
  client.once('ready', stop);
}
