import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import express, { type RequestHandler } from 'express';
import { expect, test } from 'vitest';
import { MIN_WINDOW_BYTES } from '../http/pace.ts';
import { disableBodyTimeouts, limitBodyTime } from './limit-body-time.ts';

interface Case {
  handle: RequestHandler;
  limits: Partial<Parameters<typeof limitBodyTime>[0]>;
  /** Header fields, an empty line and the beginning of the body. */
  head?: string;
  /** Continues to send; returns a function that stops it. */
  send?: (socket: Socket) => () => void;
}

const LONG_MS = 600_000;
/** Announces 100 bytes, and sends 4. */
const TOO_LITTLE = 'Content-Length: 100\r\n\r\nsome';

/** Everything that the server sends until it ends the connection. */
async function talk({ handle, limits, head = TOO_LITTLE, send }: Case): Promise<string> {
  const long = { windowMs: LONG_MS, bodyMs: LONG_MS, lingerMs: LONG_MS, endlessMs: LONG_MS };
  const app = express().use(limitBodyTime({ ...long, ...limits }), handle);
  const server = app.listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let got = '';
  socket.setEncoding('latin1').on('data', chunk => {
    got += chunk;
  });
  // The server may close while this still sends.
  socket.on('error', () => {});
  socket.write(`PUT / HTTP/1.1\r\nHost: x\r\n${head}`);
  const end = send?.(socket);
  await new Promise(resolve => socket.once('close', resolve));
  end?.();
  server.close();
  return got;
}

/** Sends these bytes every few milliseconds, unless the socket is full. */
const every = (ms: number, bytes: string) => (socket: Socket) => {
  const timer = setInterval(() => socket.writableNeedDrain || socket.write(bytes), ms);
  return () => clearInterval(timer);
};
const drop: RequestHandler = req => void req.resume();
const refuse =
  (status: number): RequestHandler =>
  (_req, res) =>
    void res.status(status).end();

test('a body that does not arrive is answered 408, and the connection closes', async () => {
  const got = await talk({ handle: drop, limits: { bodyMs: 50, endlessMs: 50 } });
  expect(got).toMatch(/^HTTP\/1\.1 408 /);
  expect(got).toContain('"code":"request_timeout"');
});

test('so is a body that drips', async () => {
  const got = await talk({
    handle: drop,
    limits: { windowMs: 500, endlessMs: 50 },
    head: 'Content-Length: 1000000\r\n\r\n',
    send: every(10, 'x'),
  });
  expect(got).toMatch(/^HTTP\/1\.1 408 /);
  expect(got).toContain('LIMIT_BODY_SECONDS');
});

test('a body that is fast enough may take many windows', async () => {
  const piece = 'x'.repeat(MIN_WINDOW_BYTES);
  let windows = 0;
  const handle: RequestHandler = (req, res) => {
    req.resume();
    const count = setInterval(() => {
      if (++windows < 4) return;
      clearInterval(count);
      res.end('well');
      req.socket.destroySoon();
    }, 500);
  };
  const got = await talk({
    handle,
    limits: { windowMs: 500 },
    head: `Content-Length: ${2 ** 40}\r\n\r\n`,
    send: every(10, piece),
  });
  expect(got).toMatch(/^HTTP\/1\.1 200 /);
});

test('the pace does not count while nothing reads', async () => {
  const handle: RequestHandler = (req, res) => {
    setTimeout(() => {
      req.resume();
      res.end('late');
    }, 150);
  };
  const got = await talk({ handle, limits: { windowMs: 50, lingerMs: 50 } });
  expect(got).toMatch(/^HTTP\/1\.1 200 /);
});

test('after an answer before the end of the body the connection closes', async () => {
  expect(await talk({ handle: refuse(404), limits: { lingerMs: 50 } })).toMatch(/^HTTP\/1\.1 404 /);
});

test('the rest of a too large body of unknown length is not read to its end', async () => {
  const got = await talk({
    handle: refuse(413),
    limits: { endlessMs: 50 },
    head: 'Transfer-Encoding: chunked\r\n\r\n',
    send: every(1, '1\r\nx\r\n'),
  });
  expect(got).toMatch(/^HTTP\/1\.1 413 /);
});

test('a route can disable the timeouts', async () => {
  const handle: RequestHandler = (req, res) => {
    disableBodyTimeouts(res);
    req.resume();
    setTimeout(() => res.end('late'), 100);
  };
  const limits = { windowMs: 20, bodyMs: 20, lingerMs: 20 };
  expect(await talk({ handle, limits })).toMatch(/^HTTP\/1\.1 200 /);
});
