import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Http } from '../http.ts';
import { PieceSender } from './piece-sender.ts';

test('the last piece gets smaller too, though it is shorter than the others', async () => {
  const stored = new Set<number>();
  const server = createServer(async (req, res) => {
    const length = Number(req.headers['content-length'] ?? 0);
    if (length > 600_000) return void req.socket.destroy();
    for await (const _ of req);
    stored.add(length);
    res.setHeader('Content-Type', 'application/json');
    res.end(req.method === 'PUT' ? '{"path":"/","size":1,"digest":""}' : undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const http = new Http({ url: `http://127.0.0.1:${port}`, token: 'x' });
    const sending = { sid: 's', folder: '/f', length: 1_000_001, total: 2_000_001, attempts: 4 };
    const sender = new PieceSender({ http } as never, sending);
    const sent: number[] = [];
    await sender.send(
      { start: 1_000_001, bytes: new Uint8Array(1_000_000) },
      {
        signal: new AbortController().signal,
        onSent: (_start, length) => sent.push(length),
      },
    );
    expect(sent).toEqual([500_000, 500_000]);
    expect(stored).toContain(500_000);
  } finally {
    server.close().closeAllConnections();
  }
});

test('a piece is written over nothing: what has its name came through before', async () => {
  const server = createServer(async (req, res) => {
    for await (const _ of req);
    const isTaken = req.headers['if-none-match'] === '*';
    res.writeHead(isTaken ? 412 : 500, { 'Content-Type': 'application/problem+json' });
    res.end(JSON.stringify({ code: isTaken ? 'precondition_failed' : 'internal_error' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const http = new Http({ url: `http://127.0.0.1:${port}`, token: 'x' });
    const sending = { sid: 's', folder: '/f', length: 10, total: 10, attempts: 0 };
    const sent: number[] = [];
    await new PieceSender({ http } as never, sending).send(
      { start: 0, bytes: new Uint8Array(10) },
      { signal: new AbortController().signal, onSent: (_start, length) => sent.push(length) },
    );
    expect(sent).toEqual([10]);
  } finally {
    server.close().closeAllConnections();
  }
});
