import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { measureRate } from './http-load.ts';

async function listen(answer: RequestListener) {
  const server = createServer(answer);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

test('a server that answers has a rate', async () => {
  const { url } = await listen((_, res) => res.end());
  expect(await measureRate({ url, status: 200 })).toBeGreaterThan(0);
});

test('a server that dies in the middle is an error', async () => {
  let answered = 0;
  const { server, url } = await listen((_, res) => {
    if (++answered === 100) server.closeAllConnections();
    else res.end();
  });
  await expect(measureRate({ url, status: 200 })).rejects.toThrow(/closed|ECONNRESET|EPIPE/);
});

test('a server that closes connections before any request is an error', async () => {
  const { server, url } = await listen((_, res) => res.end());
  server.on('connection', socket => socket.end());
  await expect(measureRate({ url, status: 200 })).rejects.toThrow(/closed|ECONNRESET|EPIPE/);
});
