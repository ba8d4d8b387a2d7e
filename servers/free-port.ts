import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the kernel's range of ephemeral ports: a client's connection could otherwise take the port before its server
 * does, or while that is down. Also below the range of the embedded Postgres (cli/embedded-postgres/port.ts).
 */
const LOWEST_PORT = 11_000;
const HIGHEST_PORT = 19_999;

/** A TCP port of 127.0.0.1 that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT + 1);
    if (await isFreePort(port)) return port;
  }
}

export function isFreePort(port: number): Promise<boolean> {
  return new Promise(settle => {
    const server = createServer();
    server.once('error', () => settle(false));
    server.listen(port, '127.0.0.1', () => server.close(() => settle(true)));
  });
}
