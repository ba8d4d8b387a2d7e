import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import express, { type RequestHandler } from 'express';
import { afterEach, expect, test } from 'vitest';
import { disconnectStalledReaders } from './disconnect-stalled-readers.ts';

const ended: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

/** A client of a service that answers so; it reads nothing until it is resumed. */
async function ask(handle: RequestHandler, ms = 100): Promise<Socket> {
  const server = express().use(disconnectStalledReaders(ms), handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ended.push(() => server.close().closeAllConnections());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  socket.on('error', () => {});
  ended.push(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  return socket;
}

/** More than the kernel takes for a client that does not read. */
const MUCH = Buffer.alloc(32 << 20, ' ');

test('a client that reads nothing is disconnected', async () => {
  let cut = () => {};
  const isCut = new Promise<void>(resolve => {
    cut = resolve;
  });
  const socket = await ask((_req, res) => void res.once('close', cut).send(MUCH));
  await isCut;
  let got = 0;
  socket.on('data', bytes => {
    got += bytes.length;
  });
  await once(socket.resume(), 'close');
  expect(got).toBeLessThan(MUCH.length);
});

test('a slow reader gets the whole answer', async () => {
  // Less than reading it all takes, more than a busy machine may pause this process.
  const socket = await ask((_req, res) => void res.send(MUCH), 500);
  let got = 0;
  socket.on('data', bytes => {
    got += bytes.length;
    socket.pause();
  });
  const reading = setInterval(() => socket.resume(), 1);
  ended.push(() => clearInterval(reading));
  while (got < MUCH.length) await once(socket, 'data');
});

test('a client that waits long for its answer gets it', async () => {
  const socket = await ask((_req, res) => {
    // Twice as long as a client may take nothing.
    res.once('timeout', () => setTimeout(() => res.end('late'), 100));
  });
  const [bytes] = (await once(socket.resume(), 'data')) as [Buffer];
  expect(String(bytes)).toMatch(/late$/);
});
