import { connect, type Socket } from 'node:net';

/** A connection on which nothing was received or sent for so long is dead: postgres.js itself would wait for ever. */
export const SILENCE_MS = 20_000;
export const CONNECT_TIMEOUT_MS = 5_000;

/** Errors of the sockets to the database; the same codes come from other places too. */
export const socketErrors = new WeakSet<object>();

/**
 * The socket that postgres.js is given. It is handed over while it connects, and what goes wrong reaches the driver as
 * the socket's error: a promise that rejected instead would take the connection out of its pool for ever.
 * `onBroken` is called when a link that stood breaks, before the driver hears of it.
 */
export function openSocket(
  options: { host: string[]; port: number[]; path?: string | false },
  onBroken: () => void = () => {},
): Socket {
  const target = options.path
    ? { path: options.path }
    : { host: options.host[0], port: options.port[0] ?? 5432 };
  const socket = connect({ ...target, noDelay: true });
  let stood = false;
  socket.on('error', error => {
    socketErrors.add(error);
    if (stood) onBroken();
  });
  let limit = 'connecting to the database timed out';
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error(limit)));
  socket.once('connect', () => {
    stood = true;
    limit = 'the database connection went silent';
    socket.setTimeout(SILENCE_MS);
  });
  // A close without an error, in the middle of a transaction, makes postgres.js 3.4.9 write to a socket that it has let go
  // of: an uncaught TypeError, and the end of the process.
  socket.on('end', () => {
    if (!socket.writableEnded) socket.destroy(new Error('the database closed the connection'));
  });
  return socket;
}
