import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import express from 'express';
import { expect, test } from 'vitest';
import { waitFor } from '../../test/harness/wait-for.ts';
import { closePipelinedResponses } from './close-pipelined-responses.ts';

/** More than an emitter takes without a warning. */
const REQUESTS = 20;

test('pipelined responses close with their connection, each once', async () => {
  const asked: number[] = [];
  const closed: number[] = [];
  const app = express();
  app.use(closePipelinedResponses());
  app.get('/:n', (req, res) => {
    const n = Number(req.params.n);
    asked.push(n);
    // The first is never answered, so all the others wait.
    res.on('close', () => closed.push(n));
    if (n > 0) res.end(String(n));
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    const all = Array.from({ length: REQUESTS }, (_, n) => n);
    socket.write(all.map(n => `GET /${n} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    await waitFor(() => asked.length === REQUESTS, { what: 'all to be asked for' });
    socket.destroy();
    await waitFor(() => closed.length >= REQUESTS, { what: 'all to be closed' });
    expect(closed.toSorted((a, b) => a - b)).toEqual(all);
  } finally {
    server.close();
  }
});
