import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import express from 'express';
import { expect, test } from 'vitest';
import { readConfig } from '../../shared/settings/config.ts';
import { isForeignPage } from '../http/same-origin.ts';
import { ALLOWED_HEADERS, allowOrigins } from './allow-origins.ts';

const API = fileURLToPath(new URL('..', import.meta.url));
/** Browsers send these themselves, or without asking (WHATWG Fetch, 2.2.2). */
const NEVER_ASKED =
  /^(Accept|Cookie|Content-Length|Host|Origin|Referer|Sec-|Access-Control-|X-Forwarded-)/;

test('every header that the API reads is allowed', () => {
  const allowed = ALLOWED_HEADERS.split(', ');
  const read = readdirSync(API, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap(name => [
      ...readFileSync(join(API, name), 'utf8').matchAll(/\breq\.get\('([A-Z][\w-]*)'\)/g),
    ])
    .map(([, header = '']) => header)
    .filter(header => !NEVER_ASKED.test(header));
  expect(read).toContain('Upload-Metadata');
  expect(read.filter(header => !allowed.includes(header))).toEqual([]);
});

test('our own origin is none of the others, though it be listed', async () => {
  const [own, other] = ['https://windlass.example', 'https://app.example'];
  const settings = { PUBLIC_URL: `${own}/`, ALLOWED_ORIGINS: `${own},${other}` };
  const app = express().use(allowOrigins(readConfig(settings)));
  app.use((_req, res) => void res.json(isForeignPage(res)));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = async (headers: Record<string, string>) =>
    (await fetch(`http://127.0.0.1:${port}/`, { headers })).json();
  expect(await ask({ Origin: other })).toBe(true);
  expect(await ask({ Origin: own })).toBe(false);
  expect(await ask({})).toBe(false);
  server.close();
});
