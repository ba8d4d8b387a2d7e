import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { afterEach, expect, test } from 'vitest';
import { PartMeter } from '../../shared/uploads/part-meter.ts';
import { pipeBody } from './pipe-body.ts';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Starts a request that sends 4 bytes of this many. Returns the server's side of it. */
async function beginRequest(announced = 100): Promise<{ req: IncomingMessage; leave(): void }> {
  server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const seen = new Promise<IncomingMessage>(resolve => server.once('request', resolve));
  const { port } = server.address() as AddressInfo;
  const sending = request({
    port,
    host: '127.0.0.1',
    method: 'PUT',
    headers: { 'Content-Length': announced },
  });
  sending.on('error', () => {});
  sending.write('some');
  return { req: await seen, leave: () => sending.destroy() };
}

test('fails when the client falls silent', async () => {
  const { req } = await beginRequest();
  const meter = new PartMeter();
  const stop = pipeBody(req, meter, 100);
  meter.resume();
  await expect(finished(meter)).rejects.toMatchObject({
    code: 'request_timeout',
    hint: expect.stringContaining('LIMIT_BODY_SECONDS'),
  });
  expect(meter.size).toBe(4);
  // It can still be answered.
  expect(req.socket.destroyed).toBe(false);
  stop();
});

test('a slow store does not count as a silent client', async () => {
  const { req, leave } = await beginRequest();
  let takeOn = () => {};
  const asleep = new Promise<void>(resolve => {
    takeOn = resolve;
  });
  const sink = new Writable({
    highWaterMark: 1,
    write: (_bytes, _encoding, done) => void asleep.then(() => done()),
  });
  const stop = pipeBody(req, sink, 400);
  await new Promise(resolve => setTimeout(resolve, 1_000));
  expect(sink.errored).toBeNull();
  takeOn();
  leave();
  await expect(finished(sink)).rejects.toMatchObject({ code: 'bad_request' });
  stop();
});

test.each([
  { when: 'in the middle of its body', announced: 100, isComplete: false },
  { when: 'after its whole body arrived', announced: 4, isComplete: true },
])('fails when the client has disconnected before, $when', async ({ announced, isComplete }) => {
  const { req, leave } = await beginRequest(announced);
  req.on('error', () => {});
  leave();
  await new Promise(resolve => req.once('close', resolve));
  expect(req.complete).toBe(isComplete);
  const meter = new PartMeter();
  const stop = pipeBody(req, meter, 60_000);
  await expect(finished(meter)).rejects.toMatchObject({ code: 'bad_request' });
  stop();
});
