import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Windlass } from './windlass.ts';

const PAGE = { 'Content-Type': 'text/html; charset=utf-8' };
const foreign = {
  code: 'foreign_answer',
  detail: expect.stringMatching(/^127\.0\.0\.1:\d+ answered with HTML\.$/),
};
let server: Server;
let client: Windlass;

/** A proxy that wants a login for all but what begins an upload. */
beforeEach(async () => {
  server = createServer((req, res) => {
    req.resume();
    if (req.method === 'POST')
      res.writeHead(201, { 'Content-Type': 'application/json' }).end('{"id":"u"}');
    else res.writeHead(200, PAGE).end('<p>Log in</p>');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  client = new Windlass({ url: `http://127.0.0.1:${port}`, token: 'x' });
});
afterEach(() => {
  server.close().closeAllConnections();
});

test('the page of a proxy is not the bytes of a file', async () => {
  await expect(client.session('s').readFile('/a').next()).rejects.toMatchObject(foreign);
});

test('a part to which a proxy answers with a page is not stored', async () => {
  const upload = client.upload(new File(['abc'], 'a'), { mid: 'm', parser: 'blob' });
  await expect(upload).rejects.toMatchObject(foreign);
});
