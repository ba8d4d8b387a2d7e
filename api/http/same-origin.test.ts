import { once } from 'node:events';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterEach, expect, test } from 'vitest';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { setLoginCookies } from '../identity/login-cookies.ts';
import { answerErrors } from '../middleware/errors.ts';
import { refuseCrossSite, requireSameOrigin } from './same-origin.ts';

type Fields = Record<string, string>;

let server: Server | undefined;
afterEach(() => server?.close());

/** Sends a request to a server with these settings and returns the status. */
async function serve(settings: Fields) {
  const config = readConfig(settings);
  const app = express().set('trust proxy', config.TRUST_PROXY).set('query parser', 'simple');
  app.use('/login', (req, res) => {
    refuseCrossSite(req, config);
    setLoginCookies({ req, res }, { config, secret: 'secret', expires: new Date('2030-01-01') });
    res.end();
  });
  app.use('/basic', (req, res) => {
    refuseCrossSite(req, config);
    res.end();
  });
  app.use((req, res) => {
    requireSameOrigin(req, config);
    res.end();
  });
  app.use(answerErrors(createLog({ level: 'silent', name: 'test' }), () => undefined));
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return async (method: string, path: string, headers: Fields) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers });
    sent.end();
    const [response] = await once(sent, 'response');
    response.resume();
    return { status: response.statusCode, cookies: response.headers['set-cookie'] };
  };
}

async function expectStatuses(settings: Fields, cases: [number, string, string, Fields][]) {
  const send = await serve(settings);
  for (const [status, method, path, headers] of cases)
    expect([method, path, headers, (await send(method, path, headers)).status]).toEqual([
      method,
      path,
      headers,
      status,
    ]);
}

const Host = 'localhost:9000';

test('a write needs our Origin', () =>
  expectStatuses({}, [
    [200, 'POST', '/', { Host, Origin: 'http://localhost:9000' }],
    [200, 'DELETE', '/', { Host, Origin: 'http://127.0.0.1:9000' }],
    [200, 'PUT', '/', { Host, Origin: 'http://[::1]:9000' }],
    [200, 'PUT', '/', { Host: 'box', Origin: 'http://box:80' }],
    [403, 'POST', '/', { Host, Origin: 'http://localhost:9001' }],
    [403, 'POST', '/', { Host, Origin: 'https://localhost:9000' }],
    [403, 'POST', '/', { Host, Origin: 'http://localhost' }],
    [403, 'POST', '/', { Host, Origin: 'http://localhost.other.example:9000' }],
    [403, 'POST', '/', { Host, Origin: 'http://localhost:9000@other.example' }],
    [403, 'POST', '/', { Host: 'box:9000', Origin: 'http://localhost:9000' }],
    [403, 'POST', '/', { Host, Origin: 'null' }],
    [403, 'POST', '/', { Host, Origin: '' }],
    [403, 'POST', '/', { Host, Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }],
    [403, 'POST', '/', { Host }],
    [200, 'POST', '/', { Host, 'Sec-Fetch-Site': 'same-origin' }],
    [403, 'POST', '/', { Host, 'Sec-Fetch-Site': 'same-site' }],
    [403, 'POST', '/', { Host, 'Sec-Fetch-Site': 'none' }],
    [403, 'POST', '/', { Host, Referer: 'http://localhost:9000/' }],
    [403, 'PATCH', '/', { Host }],
    [200, 'GET', '/', { Host, Origin: 'http://other.example' }],
    [200, 'HEAD', '/?cache=project', { Host }],
  ]));

test('a GET that caches needs Sec-Fetch-Site or a Referer', () =>
  expectStatuses({}, [
    [403, 'GET', '/?cache=project', { Host }],
    [403, 'GET', '/?%63ache=project', { Host }],
    [403, 'GET', '/?cache', { Host }],
    [403, 'GET', '/?cache=a&cache=b', { Host }],
    [403, 'GET', '/?cache=project', { Host, 'Sec-Fetch-Site': 'cross-site' }],
    [403, 'GET', '/?cache=project', { Host, Referer: 'http://other.example/localhost:9000' }],
    [200, 'GET', '/?cache=project', { Host, Referer: 'http://localhost:9000/page?x' }],
    [200, 'GET', '/?cache=project', { Host, 'Sec-Fetch-Site': 'same-origin' }],
    // A foreign site, to which a page of ours leads, redirects back.
    ...['cross-site', 'same-site', 'none', ''].map((site): [number, string, string, Fields] => [
      403,
      'GET',
      '/?cache=project',
      { Host, Referer: 'http://localhost:9000/', 'Sec-Fetch-Site': site },
    ]),
    [200, 'GET', '/', { Host, 'Sec-Fetch-Site': 'cross-site' }],
  ]));

test('PUBLIC_URL alone says which origin is ours', () =>
  expectStatuses({ PUBLIC_URL: 'https://windlass.example/' }, [
    [200, 'POST', '/', { Host, Origin: 'https://windlass.example' }],
    [200, 'POST', '/', { Host, Origin: 'https://windlass.example:443' }],
    [403, 'POST', '/', { Host, Origin: 'http://windlass.example' }],
    [403, 'POST', '/', { Host, Origin: 'http://localhost:9000' }],
    [403, 'POST', '/', { Host: 'windlass.example', Origin: 'http://localhost:9000' }],
  ]));

test('a trusted proxy says how the client came, any other does not', async () => {
  const proxied = { Host, 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'windlass.example' };
  const Origin = 'https://windlass.example';
  await expectStatuses({ TRUST_PROXY: '1' }, [
    [200, 'POST', '/', { ...proxied, Origin }],
    [403, 'POST', '/', { ...proxied, Origin: 'http://localhost:9000' }],
  ]);
  server?.close();
  await expectStatuses({}, [
    [403, 'POST', '/', { ...proxied, Origin }],
    [200, 'POST', '/', { ...proxied, Origin: 'http://localhost:9000' }],
  ]);
});

test('a login needs no Origin, but not a foreign one; a password no foreign site', () =>
  expectStatuses({}, [
    [200, 'POST', '/login', { Host }],
    [200, 'POST', '/login', { Host, Origin: 'http://localhost:9000' }],
    [403, 'POST', '/login', { Host, Origin: 'http://other.example' }],
    [403, 'POST', '/login', { Host, Origin: 'null' }],
    [403, 'POST', '/login', { Host, 'Sec-Fetch-Site': 'cross-site' }],
    [200, 'POST', '/basic', { Host }],
    [200, 'POST', '/basic', { Host, Origin: 'http://localhost:9000' }],
    [403, 'POST', '/basic', { Host, Origin: 'http://other.example' }],
    [403, 'PUT', '/basic', { Host, Origin: 'null' }],
    [403, 'GET', '/basic?cache=project', { Host, Origin: 'http://other.example' }],
    [200, 'GET', '/basic', { Host, Origin: 'http://other.example' }],
    [403, 'POST', '/basic', { Host, 'Sec-Fetch-Site': 'cross-site' }],
    [403, 'DELETE', '/basic', { Host, 'Sec-Fetch-Site': 'same-site' }],
    [200, 'GET', '/basic', { Host, 'Sec-Fetch-Site': 'cross-site' }],
  ]));

test('cookies are Secure where clients come by https', async () => {
  const isSecure = async (settings: Fields, headers: Fields) => {
    const send = await serve(settings);
    const { cookies } = await send('POST', '/login', headers);
    server?.close();
    expect(cookies).toHaveLength(2);
    return cookies?.map((cookie: string) => cookie.includes('; Secure'));
  };
  const forwarded = { 'X-Forwarded-Proto': 'https' };
  expect(await isSecure({}, forwarded)).toEqual([false, false]);
  expect(await isSecure({ TRUST_PROXY: '1' }, forwarded)).toEqual([true, true]);
  expect(await isSecure({ TRUST_PROXY: '1' }, {})).toEqual([false, false]);
  expect(await isSecure({ PUBLIC_URL: 'https://windlass.example' }, {})).toEqual([true, true]);
});
