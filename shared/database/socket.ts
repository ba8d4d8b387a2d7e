import { connect, Socket } from 'node:net';

/** A connection without traffic for so long is dead; postgres.js itself has no such timeout. */
const SILENCE_MS = 20_000;
export const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Errors of sockets to the database, and of connections that get no answer; their codes alone do not tell them from other
 * sockets' errors.
 */
export const socketErrors = new WeakSet<object>();

export interface SocketTarget {
  host: string[];
  port: number[];
  path?: string | false;
}

/**
 * The socket for a connection of postgres.js. It is returned before it is connected, so that failures reach the driver as
 * the socket's errors. `onBroken` is called when an established connection breaks, before the driver notices.
 */
export function openSocket(
  options: SocketTarget,
  { onBroken, onError }: { onBroken: () => void; onError: () => void },
): Socket {
  const target = options.path
    ? { path: options.path }
    : { host: options.host[0], port: options.port[0] ?? 5432 };
  const socket = connect({ ...target, noDelay: true });
  let wasConnected = false;
  socket.on('error', error => {
    socketErrors.add(error);
    onError();
    if (wasConnected) onBroken();
  });
  let limit = 'connecting to the database timed out';
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error(limit)));
  socket.once('connect', () => {
    wasConnected = true;
    limit = 'the database connection timed out';
    socket.setTimeout(SILENCE_MS);
  });
  // After a close without an error inside a transaction, postgres.js 3.4.9 writes to a socket that it has dropped: an
  // uncaught TypeError, which would end the process.
  socket.on('end', () => {
    if (!socket.writableEnded) socket.destroy(new Error('the database closed the connection'));
  });
  return socket;
}

/** A socket that fails a moment later: the driver listens to it only once it has it. */
export function failSoon(error: Error): Socket {
  const socket = new Socket();
  socketErrors.add(error);
  setImmediate(() => socket.destroy(error));
  return socket;
}
