import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Http } from './http.ts';
import { type ReadBytesOptions, readBytes } from './read-bytes.ts';

let server: Server;
afterEach(() => {
  server.close().closeAllConnections();
});

/** Reads what grows from answer to answer, each of which but the last is cut in its middle. */
async function read(
  bodies: string[],
  {
    tags = [],
    status = 206,
    options,
  }: { tags?: string[]; status?: number; options?: ReadBytesOptions } = {},
): Promise<string> {
  const cuts = bodies.length - 1;
  let answered = 0;
  server = createServer((req, res) => {
    const body = bodies[answered] ?? '';
    const [, from = '0'] = /bytes=(\d+)-/.exec(req.headers.range ?? '') ?? [];
    const rest = body.slice(Number(from));
    const tag = tags[answered];
    const headers = { 'Content-Length': rest.length, ...(tag && { ETag: tag }) };
    res.writeHead(status, headers);
    if (answered++ < cuts) res.write(rest.slice(0, rest.length / 2), () => res.destroy());
    else res.end(rest);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const http = new Http({ url: `http://127.0.0.1:${port}`, token: 'x' });
  const pieces: Uint8Array[] = [];
  const ask = (at: number) => ({ path: '/file', headers: { Range: `bytes=${at}-` } });
  for await (const piece of readBytes(http, ask, options)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test('what is cut goes on where it was cut', async () => {
  const whole = 'abcdefghijklmnopqrstuvwxyz';
  expect(await read([whole, whole, whole])).toBe(whole);
  expect(await read([''])).toBe('');
});

test('bytes of two states are not mixed', async () => {
  await expect(read(['abcdefghij', 'abcdefghijk'])).rejects.toMatchObject({ code: 'changed' });
  await expect(read(['abcdefghij', 'abcdefgh'])).rejects.toMatchObject({ code: 'changed' });
  const whole = 'abcdefghij';
  expect(await read([whole, whole], { tags: ['"1"', '"1"'] })).toBe(whole);
  await expect(read([whole, whole], { tags: ['"1"', '"2"'] })).rejects.toMatchObject({
    code: 'changed',
  });
});

test('all of a file is not taken for the part that was asked for', async () => {
  await expect(read(['abc'], { status: 200 })).rejects.toMatchObject({ code: 'foreign_answer' });
});

test('what was read before goes on where its state is still there', async () => {
  const begun: unknown[] = [];
  const onBegin = (told: unknown) => begun.push(told);
  const given = { tags: ['"1"'], options: { tag: '"1"', onBegin } };
  expect(await read(['klm'], given)).toBe('klm');
  expect(begun).toEqual([{ tag: '"1"', length: 3 }]);
  for (const tags of [['"2"'], []])
    await expect(read(['klm'], { ...given, tags })).rejects.toMatchObject({ code: 'changed' });
});
