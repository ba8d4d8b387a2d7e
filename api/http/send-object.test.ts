import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLog } from '../../shared/log.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { makeTempDir } from '../../test/harness/temp-dir.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { answerErrors } from '../middleware/errors.ts';
import { sendObject } from './send-object.ts';

const directory = makeTempDir('send');
const objects = new FileStore(directory.path);
let server: Server;
let port: number;

beforeAll(async () => {
  await objects.put('empty', Buffer.alloc(0));
  await objects.put('large', Buffer.alloc(64 << 20));
  await objects.put('ten', Buffer.from('0123456789'));
  const app = express();
  app.get('/:key', (req, res) =>
    sendObject({ objects }, req, res, { key: req.params.key, type: 'video/mp4' }),
  );
  app.use(answerErrors(createLog({ level: 'silent', name: 'test' })));
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server?.close();
  directory.remove();
});

const ask = async (key: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`http://127.0.0.1:${port}/${key}`, { headers });
  return [response.status, response.headers.get('Content-Range'), await response.text()];
};

test('no range of an empty object is satisfiable', async () => {
  expect(await ask('empty')).toEqual([200, null, '']);
  for (const Range of ['bytes=0-', 'bytes=0-0', 'bytes=-1'])
    expect((await ask('empty', { Range })).slice(0, 2)).toEqual([416, 'bytes */0']);
});

test('ranges', async () => {
  expect(await ask('ten', { Range: 'bytes=2-4' })).toEqual([206, 'bytes 2-4/10', '234']);
  expect(await ask('ten', { Range: 'bytes=-3' })).toEqual([206, 'bytes 7-9/10', '789']);
  expect(await ask('ten', { Range: 'bytes=8-' })).toEqual([206, 'bytes 8-9/10', '89']);
  expect(await ask('ten', { Range: 'bytes=4-2' })).toEqual([200, null, '0123456789']);
});

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
