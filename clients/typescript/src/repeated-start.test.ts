import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Windlass } from './windlass.ts';

test('a command whose answer was lost has its job, also where it has failed since', async () => {
  let asked = 0;
  const server = createServer((req, res) => {
    req.resume();
    if (asked++ === 0) return void req.socket.destroy();
    res
      .writeHead(400, { 'Content-Type': 'application/problem+json', Location: '/api/jobs/j2' })
      .end(JSON.stringify({ code: 'time_limit', detail: 'Time limit reached.' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new Windlass({ url: `http://127.0.0.1:${port}`, token: 'x' });
  try {
    const run = client.session('s').run('sleep 60', { timeout: 5, idempotencyKey: 'k' });
    expect(await run.job).toBe('j2');
  } finally {
    server.close().closeAllConnections();
  }
});
