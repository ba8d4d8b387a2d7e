import { once } from 'node:events';
import { createServer, isIPv6 } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError, errnoOf } from '../command-error.ts';

/** What the processes of a killed supervisor take to end and release the port. */
const PORT_WAIT_MS = 5_000;

/** RFC 3986, 3.2.2: an IPv6 address stands in brackets. */
export const addressOf = (host: string, port: number): string =>
  `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;

/** Throws CommandError if a port is in use, before anything is started. */
export async function requireFreePorts(host: string, ports: number[]): Promise<void> {
  const until = performance.now() + PORT_WAIT_MS;
  for (const port of ports) {
    if (port > 65_535)
      throw new CommandError(`There is no port ${port} for the second API process.`, {
        hint: 'Set PORT to a lower one.',
      });
    await requireFreePort(host, port, until);
  }
}

/** Waits for the port until then, a time of performance.now(). */
async function requireFreePort(host: string, port: number, until: number): Promise<void> {
  for (;;) {
    const code = await tryPort(host, port);
    if (code === undefined) return;
    if (code !== 'EADDRINUSE') {
      throw new CommandError(`Windlass cannot listen on ${host}:${port} (${code}).`, {
        hint: 'Set HOST and PORT.',
      });
    }
    if (performance.now() > until) {
      throw new CommandError(`Port ${port} on ${host} is in use.`, {
        hint: 'Set PORT to a free one.',
      });
    }
    await delay(100);
  }
}

/** The error code of listening there, if it fails. */
async function tryPort(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    return errnoOf(error) ?? 'unknown';
  }
  server.close();
  await once(server, 'close');
  return undefined;
}
