import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { pinImages } from './pin.ts';
import { askDigest } from './registry.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const OLD = `sha256:${'b'.repeat(64)}`;

test('each image gets its digest, also where it had another', async () => {
  const asked: string[] = [];
  const text = `FROM node:24.1.0-slim AS build\nFROM node:24.1.0-slim@${OLD}\n  image: quay.io/a/b:R.1-Z\n  image: windlass\n`;
  const pinned = await pinImages(text, async (image, tag) => {
    asked.push(`${image} ${tag}`);
    return DIGEST;
  });
  expect(pinned).toBe(
    `FROM node:24.1.0-slim@${DIGEST} AS build\nFROM node:24.1.0-slim@${DIGEST}\n  image: quay.io/a/b:R.1-Z@${DIGEST}\n  image: windlass\n`,
  );
  expect(asked).toEqual(['node 24.1.0-slim', 'quay.io/a/b R.1-Z']);
});

test('a registry is asked as anybody, with the token that it offers', async () => {
  const server = createServer((req, res) => {
    const origin = `http://${req.headers.host}`;
    if (req.url?.startsWith('/token?')) {
      const { searchParams } = new URL(req.url, origin);
      res.end(JSON.stringify({ token: searchParams.get('scope') }));
    } else if (req.url === '/v2/library/node/manifests/1') {
      const scope = 'repository:library/node:pull';
      if (req.headers.authorization !== `Bearer ${scope}`) {
        const challenge = `Bearer realm="${origin}/token",service="it",scope="${scope}"`;
        res.writeHead(401, { 'WWW-Authenticate': challenge }).end();
      } else res.writeHead(200, { 'Docker-Content-Digest': DIGEST }).end();
    } else res.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await askDigest('node', '1', registry)).toBe(DIGEST);
  await expect(askDigest('node', '2', registry)).rejects.toThrow('node:2');
  await expect(askDigest('quay.io/a/b', '1', registry)).rejects.toThrow('answers 404');
  server.closeAllConnections();
  server.close();
});
