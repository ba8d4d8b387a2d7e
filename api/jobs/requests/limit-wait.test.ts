import { getEventListeners, once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { limitWait } from './limit-wait.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

test('a wait ends in time though garbage is collected meanwhile', { timeout: 5_000 }, async () => {
  const { stopping } = newService();
  const { signal, isDisconnected } = limitWait({ stopping }, newResponse(), 0.3);
  const ended = once(signal, 'abort');
  const collecting = setInterval(collectGarbage, 30);
  await ended;
  clearInterval(collecting);
  expect(isDisconnected()).toBe(false);
});

test('a wait ends when the client disconnects', async () => {
  const { stopping } = newService();
  const res = newResponse();
  const { signal, isDisconnected } = limitWait({ stopping }, res);
  expect(signal.aborted).toBe(false);
  res.emit('close');
  expect(signal.aborted).toBe(true);
  expect(isDisconnected()).toBe(true);
});

test('a client that left before the wait began leaves nothing behind', () => {
  const { stopping } = newService();
  const res = newResponse();
  res.destroy();
  const { signal, isDisconnected } = limitWait({ stopping }, res, 60);
  expect([signal.aborted, isDisconnected()]).toEqual([true, true]);
  expect(getEventListeners(stopping, 'abort')).toEqual([]);
});

test('a wait ends when the service stops, also where it begins after that', () => {
  const { stopping, stop } = newService();
  const earlier = limitWait({ stopping }, newResponse(), 60);
  stop();
  const later = limitWait({ stopping }, newResponse(), 60);
  for (const { signal, isDisconnected } of [earlier, later]) {
    expect(signal.aborted).toBe(true);
    expect(isDisconnected()).toBe(false);
  }
});

function newService() {
  const service = new AbortController();
  return { stopping: service.signal, stop: () => service.abort() };
}
