import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLog } from '../../shared/process/log.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { sendSlice } from '../arrays/send-slice.ts';
import type { ApiContext } from '../context.ts';
import { answerErrors } from '../middleware/errors.ts';
import { SendBuffers } from './send-buffers.ts';
import { sendObject } from './send-object.ts';

const directory = makeTempDir('send');
const objects = new FileStore(directory.path);
const sendBuffers = new SendBuffers();
const left: PromiseSettledResult<void>[] = [];
let server: Server;
let port: number;

beforeAll(async () => {
  await objects.put('empty', Buffer.alloc(0));
  await objects.put('large', Buffer.alloc(64 << 20));
  await objects.put('mixed', mixed);
  await objects.put('ten', Buffer.from('0123456789'));
  const app = express();
  app.get('/:key', (req, res) =>
    sendObject({ objects, sendBuffers }, { req, res }, { key: req.params.key, type: 'video/mp4' }),
  );
  app.get('/left/:key', async (req, res) => {
    req.socket.destroy();
    await once(res, 'close');
    const { key } = req.params;
    const slice = {
      array: { artifact: { object: key }, descr: '<f8', shape: [10], offset: 0 },
      extents: [{ from: 0, to: 10, isIndex: false }],
    };
    const api = { objects, sendBuffers } as unknown as ApiContext;
    const sent = [
      sendObject(api, { req, res }, { key, type: 'video/mp4' }),
      sendSlice(api, res, slice as unknown as Parameters<typeof sendSlice>[2]),
    ];
    left.push(...(await Promise.allSettled(sent)));
  });
  app.use(answerErrors(createLog({ level: 'silent', name: 'test' }), () => undefined));
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server?.close();
  directory.remove();
});

const PIECE = 1 << 20;
const mixed = Buffer.from(Array.from({ length: 3 * PIECE }, (_, i) => (i * i) >> 7));

const ask = async (key: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`http://127.0.0.1:${port}/${key}`, { headers });
  return [response.status, response.headers.get('Content-Range'), await response.text()];
};

test('no range of an empty object is satisfiable', async () => {
  expect(await ask('empty')).toEqual([200, null, '']);
  for (const Range of ['bytes=0-', 'bytes=0-0', 'bytes=-1'])
    expect((await ask('empty', { Range })).slice(0, 2)).toEqual([416, 'bytes */0']);
});

test('a client that left before its answer began is no error', async () => {
  for (const key of ['ten', 'large']) await expect(ask(`left/${key}`)).rejects.toThrow();
  await waitFor(() => left.length === 4, { what: 'the ends of both answers' });
  expect(left.map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
});

test('ranges', async () => {
  expect(await ask('ten', { Range: 'bytes=2-4' })).toEqual([206, 'bytes 2-4/10', '234']);
  expect(await ask('ten', { Range: 'bytes=-3' })).toEqual([206, 'bytes 7-9/10', '789']);
  expect(await ask('ten', { Range: 'bytes=8-' })).toEqual([206, 'bytes 8-9/10', '89']);
  expect(await ask('ten', { Range: 'bytes=4-2' })).toEqual([200, null, '0123456789']);
});

test('pieces for more clients at once than there are buffers, of whom some read nothing', async () => {
  const askFor = (start: number) => ({ Range: `bytes=${start}-${start + PIECE - 1}` });
  const silent = await Promise.all(Array.from({ length: 40 }, () => askAndStop(askFor(5))));
  const read = async (start: number) => {
    const response = await fetch(`http://127.0.0.1:${port}/mixed`, { headers: askFor(start) });
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.equals(mixed.subarray(start, start + PIECE))).toBe(true);
  };
  await Promise.all(Array.from({ length: 8 }, (_, i) => read(i * 99_999)));
  for (const socket of silent) socket.destroy();
  for (let i = 0; i < 40; i++) await read(i * 50_000);
});

/** Asks for a piece and reads nothing of the answer but its first bytes. */
async function askAndStop(headers: Record<string, string>) {
  const socket = connect(port, '127.0.0.1');
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET /mixed HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`);
  await once(socket, 'data');
  return socket.pause();
}

test('an object that was deleted is 404', async () => {
  expect((await ask('none'))[0]).toBe(404);
});

test('a client that disconnects leaves no file open', async () => {
  const isOpen = () =>
    readdirSync('/proc/self/fd').some(fd => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === join(directory.path, 'objects', 'large');
      } catch {
        return false;
      }
    });
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  socket.pause();
  expect(isOpen()).toBe(true);
  socket.destroy();
  await waitFor(() => !isOpen(), { what: 'the file to be closed' });
});
