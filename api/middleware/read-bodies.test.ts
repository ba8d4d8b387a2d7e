import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express, { type Request, type Response } from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RawConnection } from '../../test/harness/clients/raw-http.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import type { ApiContext } from '../context.ts';
import { RequestMemory } from '../http/request-memory.ts';
import { readBodies } from './read-bodies.ts';

/** Four such bodies are what one user may have in memory. */
const config = {
  LIMIT_BODY_BYTES: 8 << 20,
  LIMIT_JSON_DEPTH: 9,
  LIMIT_JSON_MEMBERS: 9,
  LIMIT_LIST_ITEMS: 9,
};
const asked: { req: Request; res: Response }[] = [];
const app = express();
app.use((req, res, next) => {
  asked.push({ req, res });
  res.locals.user = { username: 'one' } as NonNullable<Express.Locals['user']>;
  next();
});
const requestMemory = new RequestMemory(async () => {}, 30_000);
app.use(readBodies({ config, requestMemory } as unknown as ApiContext));
app.use((req, res) => res.json(req.body));
const server = app.listen(0, '127.0.0.1');
const connections: RawConnection[] = [];
beforeAll(async () => server.listening || (await once(server, 'listening')));
afterAll(() => {
  for (const connection of connections) connection.end();
  server.close();
});

const CHUNKED = 'Transfer-Encoding: chunked';
async function begin(...fields: string[]): Promise<RawConnection> {
  const connection = new RawConnection(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  connections.push(connection);
  const before = asked.length;
  const head = ['POST / HTTP/1.1', 'Host: h', 'Content-Type: application/json', ...fields];
  connection.write([...head, '', ''].join('\r\n'));
  await waitFor(() => asked.length > before, { what: 'the request to arrive' });
  return connection;
}
const areRead = () => asked.map(({ req }) => req.readableFlowing === true);

test('bodies whose size nobody knows wait for memory before they are read', async () => {
  const [first] = [
    await begin(CHUNKED),
    await begin(CHUNKED),
    await begin(CHUNKED, 'Content-Encoding: gzip'),
    await begin('Content-Length: 100', 'Content-Encoding: gzip'),
  ];
  const fifth = await begin(CHUNKED);
  const small = await begin('Content-Length: 2');
  await waitFor(() => areRead().at(-1), { what: 'a small body to be read' });
  expect(areRead()).toEqual([true, true, true, true, false, true]);
  small.write('{}');
  expect((await small.next())?.body).toBe('{}');
  first.write('2\r\n[]\r\n0\r\n\r\n');
  expect((await first.next())?.body).toBe('[]');
  fifth.write('3\r\n[1]\r\n0\r\n\r\n');
  expect((await fifth.next())?.body).toBe('[1]');
});
