import type { Duplex } from 'node:stream';

/** What a connection goes over: a socket, or a channel of another connection. */
export type Transport = Duplex & { readonly bytesRead: number };

/** For one connection: TCP, then the key exchange and the login, for which sshd itself allows 120 s. */
export const CONNECTION_LIMITS = { connectMs: 10_000, loginMs: 20_000 };

/** The most that a server may send before the end of the login: ssh2 reads all, and keeps some of it. */
const MAX_LOGIN_BYTES = 1_000_000;

/** Closes the connection and calls `onExcess` if the server sends too much before the returned function is called. */
export function limitLogin(transport: Transport, onExcess: (error: Error) => void): () => void {
  const check = () => {
    if (transport.bytesRead <= MAX_LOGIN_BYTES) return;
    stop();
    transport.destroy();
    onExcess(new Error('the host sent more than 1 MB before the login'));
  };
  const stop = () => void transport.off('data', check);
  // Before the listener of who reads the bytes sees them.
  transport.prependListener('data', check);
  return stop;
}
