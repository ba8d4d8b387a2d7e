import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openConsole, useChromium } from '../harness/browser/console-page.ts';
import { expectNoFrame } from '../harness/clients/no-frame.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type IdleApp, openIdleApp } from '../interface/app.ts';

/** What the first load may weigh, as a browser gets it. */
const MAX_BYTES = 120_000;
/** On a laptop that is four times as slow as this machine. */
const USABLE_MS = 1_000;
const SLOWDOWN = 4;
/** Other tests run on this machine: on a quiet one it takes a third. */
const BUSY = 3;

let idle: IdleApp;
let server: Server;
let url: string;

beforeAll(async () => {
  idle = await openIdleApp();
  server = createServer(idle.app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await idle.close();
});

/** Whatever it answers, no page of another site shows it. */
async function get(path: string, init?: RequestInit): Promise<Response> {
  const answer = await fetch(`${url}${path}`, { redirect: 'manual', ...init });
  expectNoFrame(answer, path);
  return answer;
}
/** What the page loads at once. */
async function listAssets(): Promise<string[]> {
  const html = await (await get('/console/')).text();
  return [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(match => `/console/${match[1]}`);
}

describe('the files of the console', () => {
  test('the page is asked for each time, what it names is kept', async () => {
    const page = await get('/console/jobs/some/path?with=query');
    expect([page.status, page.headers.get('Cache-Control')]).toEqual([200, 'no-cache']);
    expect(page.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    const again = await get('/console/', {
      headers: { 'If-None-Match': page.headers.get('ETag') ?? '' },
    });
    expect(again.status).toBe(304);
    const assets = await listAssets();
    const hashed = assets.filter(path => path.startsWith('/console/assets/'));
    expect(hashed.length).toBeGreaterThanOrEqual(2);
    for (const path of hashed) {
      const file = await get(path, { headers: { 'Accept-Encoding': 'gzip' } });
      expect(file.status).toBe(200);
      expect(file.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable');
      expect(file.headers.get('Content-Encoding')).toBe('gzip');
      expect(file.headers.get('Vary')).toContain('Accept-Encoding');
      const plain = await get(path, { headers: { 'Accept-Encoding': 'identity' } });
      expect(plain.headers.get('ETag')).not.toBe(file.headers.get('ETag'));
      expect(await plain.text()).toBe(await file.text());
    }
  });

  test('nothing is inline, from elsewhere, or a text that becomes a script', async () => {
    const page = await get('/console/');
    const policy = page.headers.get('Content-Security-Policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    const html = await page.text();
    expect(html).not.toMatch(/<style|<script(?![^>]*src=)|\son\w+=|https?:/);
    const licences = await (await get('/console/licences.md')).text();
    for (const name of ['preact', '@tanstack/preact-query', 'wouter-preact', 'openapi-fetch'])
      expect(licences).toContain(name);
  });

  test('what is not there, or not read, is an error as everywhere', async () => {
    await expectProblem(await get('/console/assets/index-gone.js'), 404, 'not_found');
    await expectProblem(await get('/console/', { method: 'POST' }), 405, 'method_not_allowed');
    expect((await get('/consoles/')).status).toBe(401);
    const bare = await get('/console?session=x');
    expect([bare.status, bare.headers.get('Location')]).toEqual([308, '/console/?session=x']);
    const head = await get('/console/', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test(`the first load has less than ${MAX_BYTES} bytes by gzip`, async () => {
    const bodies = await Promise.all(
      ['/console/', ...(await listAssets())].map(async path => (await get(path)).arrayBuffer()),
    );
    const sizes = bodies.map(body => gzipSync(Buffer.from(body)).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);
  });
});

describeUnless(missingPrograms('chromium'), 'the console on a slow laptop', () => {
  const browser = useChromium();

  test(`can be used within ${USABLE_MS} ms`, async () => {
    const times: number[] = [];
    // What the processor works for the page, by the clock of its thread: other programs of this machine have their share of it.
    for (let attempt = 0; attempt < 5 && !times.some(ms => ms < USABLE_MS); attempt++) {
      const { page } = await openConsole(browser, url, { path: 'licences.md' });
      const devtools = await page.context().newCDPSession(page);
      await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
      await page.goto(`${url}/console/`, { waitUntil: 'commit' });
      await page.getByLabel('User name').waitFor();
      const { metrics } = await devtools.send('Performance.getMetrics');
      const worked = metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
      times.push(SLOWDOWN * worked * 1_000);
      await page.context().close();
    }
    expect(Math.min(...times), times.join(', ')).toBeLessThan(USABLE_MS);
  });

  test('is there soon by the clock on the wall, on a processor that is slowed down', async () => {
    const times: number[] = [];
    for (let attempt = 0; attempt < 5 && !times.some(ms => ms < USABLE_MS); attempt++) {
      const { page } = await openConsole(browser, url, { path: 'licences.md' });
      const devtools = await page.context().newCDPSession(page);
      await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN });
      await page.addInitScript(WAIT_FOR_FIELD);
      await page.goto(`${url}/console/`, { waitUntil: 'commit' });
      await page.getByLabel('User name').waitFor();
      const read = () => page.evaluate<number | undefined>('globalThis.usableAt');
      await expect.poll(read, { timeout: 10_000 }).toBeGreaterThan(0);
      times.push((await read()) ?? Number.NaN);
      await page.context().close();
    }
    expect(Math.min(...times), times.join(', ')).toBeLessThan(BUSY * USABLE_MS);
  });
});

/** In the page: when its first field can be typed into, in ms since it was gone to. */
const WAIT_FOR_FIELD = `(() => {
  const look = () => {
    if (document.activeElement?.name === 'username') globalThis.usableAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
})()`;
