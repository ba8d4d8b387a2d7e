import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';

type Sent = { path: string; init?: RequestInit };

/** What a real browser sends by itself: cookies, Origin, Referer, Sec-Fetch-Site. */
describeUnless(missingPrograms('chromium'), 'a browser that is logged in', () => {
  let stack: Stack;
  let foreign: Server;
  let foreignUrl: string;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    // Another port of the same host: another origin, but the same site, so that cookies come along.
    foreign = createServer((_req, res) => {
      res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>other</title>');
    }).listen(0, '127.0.0.1');
    [stack, browser] = await Promise.all([
      startStack({ workers: 1 }),
      chromium.launch({ executablePath: findProgram('chromium'), args: ['--no-sandbox'] }),
      once(foreign, 'listening'),
    ]);
    foreignUrl = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`;
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.stop();
    foreign?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    await page.goto(`${stack.url}/healthz`);
    const { username, password } = stack;
    const login = { path: '/api/login', init: post({ username, password, target: '/x' }) };
    expect(await send(login)).toEqual([200, { success: true, target: '/x' }]);
  });
  afterEach(async () => context?.close());

  const post = (body: unknown): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  /** From the page, to its own origin. */
  const send = (what: Sent) =>
    page.evaluate(async ({ path, init }) => {
      const response = await fetch(path, init);
      const text = await response.text();
      return [response.status, text === '' ? null : JSON.parse(text)];
    }, what);
  /** From the page, which cannot read the answer, to the service; the status that the service answered with. */
  const sendAcross = async ({ path, init }: Sent) => {
    const answered = page.waitForResponse(response => response.url().endsWith(path));
    await page.evaluate(
      async ({ url, init }) => {
        await fetch(url, { ...init, mode: 'no-cors', credentials: 'include' }).catch(() => {});
      },
      { url: stack.url + path, init },
    );
    return (await answered).status();
  };

  test('a page of ours reads, writes and logs out; its scripts see when the login ends, and no secret', async () => {
    const kept = await context.cookies();
    expect(kept.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toEqual([
      ['serviceauth', true, 'Lax'],
      ['servicetimeout', false, 'Lax'],
    ]);
    const visible = await page.evaluate('document.cookie');
    const ends = /^servicetimeout=([^;]+)$/.exec(String(visible))?.[1] ?? '';
    expect(new Date(ends).toISOString()).toBe(ends);

    expect(await send({ path: '/api/users/-' })).toMatchObject([200, { username: 'admin' }]);
    const made = await send({
      path: '/api/users/-/tokens',
      init: post({ name: 'x', scope: 'read' }),
    });
    expect(made).toMatchObject([201, { token: expect.stringMatching(/^wdl_/) }]);
    const video = { path: '/api/remotes/none/videos/none?cache=project' };
    expect((await send(video))[0]).not.toBe(403);
    expect(await send({ path: '/api/logout', init: { method: 'DELETE' } })).toEqual([204, null]);
    expect(await context.cookies()).toEqual([]);
    expect(
      (await send({ path: '/api/users/-', init: { headers: { 'X-Requested-With': 'x' } } }))[0],
    ).toBe(401);
  });

  test('a form of ours logs in', async () => {
    const answered = page.waitForResponse(`${stack.url}/login`);
    const fields = JSON.stringify({ username: stack.username, password: stack.password });
    await page.evaluate(`{
      const form = Object.assign(document.createElement('form'), { method: 'POST', action: '/login' });
      for (const [name, value] of Object.entries(${fields}))
        form.append(Object.assign(document.createElement('input'), { name, value }));
      document.body.append(form);
      form.submit();
    }`);
    expect((await answered).status()).toBe(200);
  });

  test('a page of another origin cannot write, though the cookies come along', async () => {
    await page.goto(foreignUrl);
    expect(await sendAcross({ path: '/api/users/-' })).toBe(200);
    const plain = { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{}' };
    for (const path of ['/api/remotes', '/api/users/-/tokens', '/api/events/x', '/api/login'])
      expect([path, await sendAcross({ path, init: plain })]).toEqual([path, 403]);
    expect(await sendAcross({ path: '/api/remotes/none/videos/none?cache=project' })).toBe(403);
  });
});
