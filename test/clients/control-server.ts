import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Direction, TcpProxy } from '../harness/servers/tcp-proxy.ts';
import type { Stack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What a test in another language can do to the service and to the way there: POST /(name)?(parameters). */
export interface ControlServer {
  url: string;
  stop(): Promise<void>;
}

/** Starts it on a free port of 127.0.0.1. */
export async function startControlServer(
  stack: Pick<Stack, 'kill' | 'api' | 'pids'>,
  proxy: TcpProxy,
  nextCode: () => string = () => '',
): Promise<ControlServer> {
  const commands: Record<string, (given: URLSearchParams) => unknown> = {
    /** Kills the API, and answers when another one serves. */
    'kill-api': async () => {
      const [killed] = stack.kill('windlass-api');
      await waitFor(() => stack.pids().every(({ pid }) => pid !== killed), { what: 'its end' });
      await waitFor(async () => (await stack.api('/readyz').catch(() => undefined))?.ok, {
        what: 'another API',
        timeoutMs: 30_000,
      });
    },
    cut: () => proxy.cut(),
    'cut-after': given =>
      proxy.cutAfter(given.get('direction') as Direction, Number(given.get('bytes'))),
    throttle: given =>
      proxy.throttle(given.get('direction') as Direction, Number(given.get('bytes'))),
    refuse: () => proxy.refuse(),
    blackhole: () => proxy.blackhole(),
    forget: () => proxy.forget(),
    heal: () => {
      proxy.heal();
      for (const direction of ['up', 'down'] as const) {
        proxy.cutAfter(direction, Number.POSITIVE_INFINITY);
        proxy.throttle(direction, Number.POSITIVE_INFINITY);
      }
    },
    /** The code for the host that asks for one. */
    'next-code': nextCode,
    bytes: () => proxy.bytes,
    connections: () => ({ open: proxy.connections.open, total: proxy.connections.total }),
  };
  const server = createServer(async (req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://127.0.0.1');
    try {
      const command = commands[pathname.slice(1)];
      if (!command) throw new Error(`There is no ${pathname}.`);
      res.end(JSON.stringify((await command(searchParams)) ?? null));
    } catch (error) {
      res.statusCode = 500;
      res.end(String(error));
    }
  });
  await new Promise<void>((settle, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', settle);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = new Promise(settle => server.close(settle));
      server.closeAllConnections();
      await closed;
    },
  };
}
