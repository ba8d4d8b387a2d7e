import { once } from 'node:events';
import { createServer, request } from 'node:http';

export interface PrefixProxy {
  stop(): Promise<void>;
}

/** A proxy that has the service at a path of its own, which it strips; all else is not found, as on a site with other pages. */
export async function startPrefixProxy(
  port: number,
  { path, to }: { path: string; to: string },
): Promise<PrefixProxy> {
  const server = createServer((req, res) => {
    const { method, url = '', headers } = req;
    if (!url.startsWith(`${path}/`)) return void res.writeHead(404).end();
    const passed = request(new URL(url.slice(path.length), to), { method, headers }, answer => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    res.on('close', () => passed.destroy());
    req.pipe(passed);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
