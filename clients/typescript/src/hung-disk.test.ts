import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import type { Connection } from './connection.ts';
import { readFile } from './host-files.ts';
import { Http } from './http.ts';

/** A worker's, in seconds. */
const LIMIT = 240;

afterEach(() => {
  vi.useRealTimers();
});

test('a host that sends nothing is waited for until the service says so', async () => {
  const asked: ServerResponse[] = [];
  const answer = (res: ServerResponse | undefined, code: string) => {
    res?.writeHead(400, { 'Content-Type': 'application/json' });
    res?.end(JSON.stringify({ code, detail: 'No file.' }));
  };
  const server = createServer((_req, res) => {
    if (asked.push(res) > 1) answer(res, 'asked_again');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const { port } = server.address() as AddressInfo;
    const http = new Http({ url: `http://127.0.0.1:${port}`, token: 'x' });
    const reading = readFile({ http } as Connection, {
      session: { sid: 's' } as never,
      path: '/file',
    }).next();
    const refused = expect(reading).rejects.toMatchObject({ code: 'time_limit' });
    await once(server, 'request');
    await vi.advanceTimersByTimeAsync((LIMIT + 1) * 1_000);
    answer(asked[0], 'time_limit');
    await refused;
  } finally {
    server.close().closeAllConnections();
  }
});
