import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const CONNECTIONS = 16;
const RUN_MS = 1_000;

interface Load {
  url: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** The expected status of every response. */
  status: number;
}

/**
 * Measures requests per second over 16 connections, each with one request at a time. Uses raw sockets, because a client
 * library needs more processor time than the measured server.
 */
export async function measureRate(load: Load): Promise<number> {
  const { hostname, port } = new URL(load.url);
  const sockets = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      await once(socket, 'connect');
      // It may break before its requests begin.
      socket.on('error', () => {});
      return socket;
    }),
  );
  const request = writeRequest(load);
  const began = performance.now();
  const until = began + RUN_MS;
  const counts = await Promise.all(
    sockets.map(socket => requestUntil({ socket, request, status: load.status, until })),
  );
  const total = counts.reduce((sum, count) => sum + count, 0);
  return total / ((performance.now() - began) / 1_000);
}

function writeRequest({ url, method = 'GET', headers = {}, body }: Load): Buffer {
  const { host, pathname, search } = new URL(url);
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
}

interface RequestLoop {
  socket: Socket;
  request: Buffer;
  status: number;
  until: number;
}

function requestUntil({ socket, request, status, until }: RequestLoop): Promise<number> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let pending: Buffer = Buffer.alloc(0);
    const fail = (why: string) => {
      socket.destroy();
      reject(new Error(why));
    };
    const closed = () => {
      if (performance.now() >= until) resolve(count);
      else reject(new Error(`The server closed a connection after ${count} responses.`));
    };
    if (socket.destroyed) return closed();
    socket.on('error', reject);
    socket.on('close', closed);
    socket.on('data', (bytes: Buffer) => {
      pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
      const length = responseLength(pending);
      if (length === undefined || pending.length < length) return;
      const head = pending.toString('latin1', 9, 12);
      if (head !== String(status))
        return fail(`${head} instead of ${status}: ${pending.toString('utf8').slice(0, 1_000)}`);
      pending = pending.subarray(length);
      count++;
      if (performance.now() < until) socket.write(request);
      else socket.end();
    });
    socket.write(request);
  });
}

/** The length of the response with its head; undefined until the head is complete. */
function responseLength(bytes: Buffer): number | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? '0';
  return end + 4 + Number(length);
}
