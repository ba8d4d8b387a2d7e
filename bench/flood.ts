/** A child process that sends so many requests a second, without waiting for the answers, and counts these by status. */
import { once } from 'node:events';
import { connect } from 'node:net';

export interface Flood {
  url: string;
  perSecond: number;
  /** The requests. `#` in headers and body is replaced by a number, a new one each time. */
  method: string;
  headers: Record<string, string>;
  body: string;
}

const CONNECTIONS = 64;
const TICK_MS = 10;

process.once('message', async (flood: Flood) => {
  const { hostname, port, host, pathname } = new URL(flood.url);
  const statuses: Record<string, number> = {};
  const sockets = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      await once(socket, 'connect');
      const idle = { socket, busy: false };
      socket.on('data', bytes => {
        const status = /^HTTP\/1\.1 (\d+)/.exec(bytes.toString('latin1'))?.[1];
        if (!status) return;
        statuses[status] = (statuses[status] ?? 0) + 1;
        idle.busy = false;
      });
      socket.on('error', () => {});
      return idle;
    }),
  );
  let sent = 0;
  let unsent = 0;
  const began = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - began) / 1_000) * flood.perSecond;
    while (sent + unsent < due) {
      const free = sockets.find(candidate => !candidate.busy);
      // Every connection waits for its answer.
      if (!free) {
        unsent++;
        continue;
      }
      free.busy = true;
      free.socket.write(write(flood, { host, pathname, n: sent++ }));
    }
  }, TICK_MS);
  process.once('message', () => {
    clearInterval(timer);
    process.send?.({ seconds: (performance.now() - began) / 1_000, sent, unsent, statuses });
    process.disconnect();
    for (const { socket } of sockets) socket.destroy();
  });
  process.send?.('begun');
});

function write(
  { method, headers, body }: Flood,
  { host, pathname, n }: { host: string; pathname: string; n: number },
): string {
  const fill = (text: string) => text.replaceAll('#', String(n));
  const filled = fill(body);
  const lines = [
    `${method} ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    'Content-Type: application/json',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${fill(value)}`),
    `Content-Length: ${Buffer.byteLength(filled)}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${filled}`;
}
