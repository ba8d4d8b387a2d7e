import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import express, { type ErrorRequestHandler, type Request } from 'express';
import { expect, test } from 'vitest';
import { enforceBodyLimit } from './enforce-body-limit.ts';

test.each([
  ['in pieces of a byte', 'x'.repeat(10_000).replaceAll('x', '1\r\nx\r\n'), 400],
  ['larger than the limit', `${(100_000).toString(16)}\r\n${'x'.repeat(100_000)}\r\n`, 413],
])('what comes of a body %s after its refusal is not kept', async (_, chunks, status) => {
  const app = express();
  const refused: Request[] = [];
  app.use(enforceBodyLimit(express.json({ limit: '1mb', type: () => true }), 65_536));
  app.use(((error, req, res, _next) => {
    refused.push(req);
    res.status(error.status ?? 413).end();
    req.resume();
  }) satisfies ErrorRequestHandler);
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    socket.write(`POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`);
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(refused.map(req => req.listenerCount('data'))).toEqual([0]);
  } finally {
    socket.destroy();
    server.close();
  }
});
