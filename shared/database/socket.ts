import { connect, Socket } from 'node:net';
import { type DatabaseTls, secure } from './tls.ts';

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
 * The socket for a connection of postgres.js. Without TLS it is returned before it is connected: failures reach the driver
 * as the socket's errors. With TLS the promise rejects until the server is known; the driver's own way to TLS takes from a
 * socket what watches it here. `onBroken` is called when an established connection breaks, before the driver notices.
 */
export async function openSocket(
  options: SocketTarget,
  events: { tls: DatabaseTls | undefined; onBroken: () => void; onError: () => void },
): Promise<Socket> {
  const { tls, onBroken, onError } = events;
  const { path, host: [host = ''] = [], port: [port = 5432] = [] } = options;
  const socket = connect({ ...(path ? { path } : { host, port }), noDelay: true });
  watch(socket, onError);
  if (!tls || path) return socket.once('connect', () => establish(socket, onBroken));
  try {
    const secured = await secure(socket, host, tls);
    // It sees no byte any more.
    socket.setTimeout(0);
    watch(secured, onError);
    establish(secured, onBroken);
    return secured;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function watch(socket: Socket, onError: () => void): void {
  socket.on('error', error => {
    socketErrors.add(error);
    onError();
  });
  socket.setTimeout(CONNECT_TIMEOUT_MS);
  socket.once('timeout', () => socket.destroy(new Error('the database connection timed out')));
  // After a close without an error inside a transaction, postgres.js 3.4.9 writes to a socket that it has dropped: an
  // uncaught TypeError, which would end the process.
  socket.on('end', () => {
    if (!socket.writableEnded) socket.destroy(new Error('the database closed the connection'));
  });
}

function establish(socket: Socket, onBroken: () => void): void {
  socket.prependListener('error', onBroken);
  socket.setTimeout(SILENCE_MS);
}

/**
 * A socket that fails while it seems to connect. postgres.js listens to it only once it has it, and writes at the next turn;
 * without that write it waits for it for ever, on each later socket of that connection too.
 */
export function failSoon(error: Error): Socket {
  const socket = Object.assign(new Socket(), { connecting: true });
  socketErrors.add(error);
  setImmediate(() => setImmediate(() => socket.destroy(error)));
  return socket;
}
