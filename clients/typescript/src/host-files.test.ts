import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { readFile, writeFile } from './host-files.ts';
import { Http } from './http.ts';

let server: Server;
let asked: number;
/** The statuses of the next answers; after them the disk is full. */
let statuses: number[];

beforeEach(async () => {
  [asked, statuses] = [0, []];
  server = createServer((req, res) => {
    req.resume();
    req.once('end', () => {
      res.writeHead(statuses.shift() ?? 507, { 'Content-Type': 'application/json' });
      res.end('{"code":"insufficient_storage","detail":"The disk is full."}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.close().closeAllConnections();
});

function connect(): Connection {
  const { port } = server.address() as AddressInfo;
  const counting: typeof fetch = (...request) => {
    asked++;
    return fetch(...request);
  };
  const url = `http://127.0.0.1:${port}`;
  return { http: new Http({ url, token: 'x', fetch: counting }) } as Connection;
}

const target = { session: { sid: 's' } as never, path: '/file' };

test.each([{ start: -3 }, { start: 2.5 }, { start: NaN }, { length: -1 }, { length: Infinity }])(
  'a part from %o is refused: its range would be none, and the service send all of the file',
  async part => {
    const reading = readFile(connect(), target, part).next();
    await expect(reading).rejects.toMatchObject({ code: 'invalid_input' });
    expect(asked).toBe(0);
  },
);

test('a full disk of the service is no lost link: the file is not sent again', async () => {
  const writing = writeFile(connect(), { ...target, bytes: 'text' }, { attempts: 1 });
  await expect(writing).rejects.toMatchObject({ code: 'insufficient_storage' });
  expect(asked).toBe(1);
});

test('nor is a source that got shorter while it was read', async () => {
  const changed = new WindlassError({ code: 'changed', detail: 'It has changed.' });
  const beginning = new Uint8Array(1 << 20);
  const bytes = {
    size: beginning.length + 1,
    slice: (start: number) => ({
      arrayBuffer: async () => {
        if (start > 0) throw changed;
        return beginning.buffer;
      },
    }),
  };
  await expect(writeFile(connect(), { ...target, bytes }, { attempts: 1 })).rejects.toBe(changed);
  expect(asked).toBe(1);
});

test.each([2, 50])('a file of %i GiB is given the time of a slow link', async GiB => {
  vi.useFakeTimers();
  try {
    const size = GiB * 2 ** 30;
    const fetch = (_request: unknown, { signal }: RequestInit = {}) =>
      new Promise<Response>((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        // 5 Mbit/s, and then the host's disk.
        setTimeout(() => resolve(Response.json({ size })), size / 625 + 3_000_000);
      });
    const http = new Http({ url: 'http://service', token: 'x', fetch });
    const bytes = { size, slice: () => new Blob([]) };
    const writing = writeFile({ http } as Connection, { ...target, bytes }, { exclusive: true });
    const written = expect(writing).resolves.toMatchObject({ size });
    await vi.runAllTimersAsync();
    await written;
  } finally {
    vi.useRealTimers();
  }
});

test('a proxy that does not reach the service is a lost link: the file is sent again', async () => {
  statuses = [522, 201];
  await writeFile(connect(), { ...target, bytes: 'text' }, { attempts: 1 });
  expect(asked).toBe(2);
});
