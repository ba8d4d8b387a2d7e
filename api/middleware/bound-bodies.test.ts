import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import express, { type RequestHandler } from 'express';
import { expect, test } from 'vitest';
import { boundBodies, takeOwnTime } from './bound-bodies.ts';

/** Announces 100 bytes, sends 4 and waits; everything that the server sends until it ends the connection. */
async function sendTooLittle(
  handle: RequestHandler,
  limits: { bodyMs: number; lingerMs: number },
): Promise<string> {
  const app = express().use(boundBodies(limits), handle);
  const server = app.listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let got = '';
  socket.setEncoding('latin1').on('data', chunk => {
    got += chunk;
  });
  socket.write('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome');
  await new Promise(resolve => socket.once('close', resolve));
  server.close();
  return got;
}

const LONG_MS = 600_000;

test('a body that does not come is answered 408, and its connection ends', async () => {
  const got = await sendTooLittle(req => void req.resume(), { bodyMs: 50, lingerMs: 50 });
  expect(got).toMatch(/^HTTP\/1\.1 408 /);
  expect(got).toContain('"code":"request_timeout"');
});

test('after an answer that overtook its body the connection ends, too', async () => {
  const answer: RequestHandler = (_req, res) => void res.status(404).end();
  const got = await sendTooLittle(answer, { bodyMs: LONG_MS, lingerMs: 50 });
  expect(got).toMatch(/^HTTP\/1\.1 404 /);
});

test('a route may let a body take its own time', async () => {
  const slow: RequestHandler = (_req, res) => {
    takeOwnTime(res);
    setTimeout(() => res.end('late'), 100);
  };
  expect(await sendTooLittle(slow, { bodyMs: 20, lingerMs: 20 })).toMatch(/^HTTP\/1\.1 200 /);
});
