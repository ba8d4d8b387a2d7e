import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import express from 'express';
import { afterAll, afterEach, expect, test } from 'vitest';
import { waitFor } from '../../test/harness/wait-for.ts';
import { RequestMemory } from './request-memory.ts';

/** All that one user may hold, and more than the kernel takes for a client that does not read. */
const MUCH = Buffer.alloc(32 << 20, ' ');

const memory = new RequestMemory(async () => {}, 500);
let answered = 0;
const server = express()
  .get('/:user/:bytes', async (req, res) => {
    const { user: username, bytes } = req.params;
    res.locals.user = { username } as NonNullable<Express.Locals['user']>;
    await memory.reserveIfLarge(res, Number(bytes));
    res.end(MUCH.subarray(0, Number(bytes)));
    answered++;
  })
  .listen(0, '127.0.0.1');
afterAll(() => server.close().closeAllConnections());
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** A client that reads nothing until it is resumed. */
function ask(user: string, bytes: number): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  socket.on('error', () => {});
  sockets.push(socket);
  socket.write(`GET /${user}/${bytes} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return socket;
}
async function read(socket: Socket): Promise<number> {
  let got = 0;
  socket.on('data', bytes => {
    got += bytes.length;
  });
  await once(socket.resume(), 'close');
  return got;
}

test('memory of answers that are hardly read is for others again; what is small does not wait', async () => {
  const before = answered;
  const slow = ['a', 'b', 'c', 'd'].map(user => ask(user, MUCH.length));
  await waitFor(() => answered === before + 4, { what: 'all memory to be taken', intervalMs: 5 });
  expect(await read(ask('e', 100_000))).toBeGreaterThan(100_000);
  expect(await read(ask('e', MUCH.length))).toBeGreaterThan(MUCH.length);
  for (const socket of slow) expect(await read(socket)).toBeLessThan(MUCH.length);
});

test('a slow reader that is fast enough gets all of its answer', async () => {
  const socket = ask('a', MUCH.length);
  let got = 0;
  let windows = 0;
  const began = performance.now();
  socket.on('data', bytes => {
    got += bytes.length;
    windows = (performance.now() - began) / 500;
    // Some of each window is spent on waiting.
    if (got > (windows + 1) * (8 << 20)) {
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    }
  });
  await once(socket.resume(), 'close');
  expect(got).toBeGreaterThan(MUCH.length);
  expect(windows).toBeGreaterThan(2);
});
