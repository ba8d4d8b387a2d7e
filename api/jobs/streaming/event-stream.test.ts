import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { EventStream, STALLED_SECONDS } from './event-stream.ts';

const ended: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

/** A stream whose client reads only when its socket is resumed. */
async function openStream(ends?: Date): Promise<{
  stream: EventStream;
  out: ServerResponse;
  socket: Socket;
}> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ended.push(() => server.close().closeAllConnections());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  socket.on('error', () => {});
  ended.push(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n');
  const [, out] = (await once(server, 'request')) as [unknown, ServerResponse];
  return { stream: new EventStream(out, { stdout: 0, stderr: 0 }, ends), out, socket };
}

/** More than the kernel takes for a client that does not read. */
const MUCH = { bytes: Buffer.alloc(32 << 20, ' '), at: { stdout: 1, stderr: 0 } };

test('a client that takes nothing for a minute is cut off, and is sent no comments meanwhile', async () => {
  const { stream, out } = await openStream();
  stream.sendOutput(MUCH);
  const { writableLength } = out;
  for (let second = 1; second < STALLED_SECONDS; second++) stream.tick();
  expect(stream.closed).toBe(false);
  expect(out.writableLength).toBe(writableLength);
  stream.tick();
  expect(stream.closed).toBe(true);
});

test('a stream ends within a second after the credential that opened it', async () => {
  const running = (await openStream(new Date(Date.now() + 60_000))).stream;
  running.tick();
  expect(running.closed).toBe(false);
  const { stream, socket } = await openStream(new Date(Date.now() - 1));
  stream.sendUpdate({ state: '{"state":"running"}', progress: undefined, ended: false });
  stream.tick();
  expect(stream.closed).toBe(true);
  socket.resume();
  await once(socket, 'end');
  for (let second = 1; second <= STALLED_SECONDS; second++) stream.tick();
});

test('a client that is slow, but takes what it is sent, is not cut off', async () => {
  const { stream, socket } = await openStream();
  stream.sendOutput(MUCH);
  for (let second = 1; second < STALLED_SECONDS; second++) stream.tick();
  const drained = new Promise<void>(resolve => stream.onDrain(resolve));
  socket.resume();
  await drained;
  socket.pause();
  stream.sendOutput(MUCH);
  for (let second = 1; second < STALLED_SECONDS; second++) stream.tick();
  expect(stream.closed).toBe(false);
});

test('a quiet stream is sent a comment every 15 seconds, a busy one none', async () => {
  const { stream, socket } = await openStream();
  let received = '';
  socket.on('data', bytes => {
    received += bytes.toString('latin1');
  });
  for (let second = 1; second <= 14; second++) stream.tick();
  stream.sendUpdate({ state: '{"state":"running"}', progress: undefined, ended: false });
  for (let second = 1; second <= 31; second++) stream.tick();
  stream.end();
  socket.resume();
  await once(socket, 'end');
  expect(received.split('\n').filter(line => line === ':')).toHaveLength(2);
  expect(received.indexOf('event: state')).toBeLessThan(received.indexOf('\n:\n'));
});
