import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { type IdleApp, openIdleApp } from '../interface/app.ts';

describeUnless(missingPrograms('chromium'), 'the page /api/docs', () => {
  let idle: IdleApp;
  let server: Server;
  let url: string;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    idle = await openIdleApp();
    server = createServer(idle.app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await chromium.launch({
      executablePath: findProgram('chromium'),
      args: ['--no-sandbox'],
    });
    // A telephone.
    page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
    server?.closeAllConnections();
    await idle?.close();
  });

  /** The widths of what can be scrolled to, and of the window. */
  const widths = () =>
    page
      .locator('html')
      .evaluate(html => [html.scrollWidth, html.ownerDocument.defaultView?.innerWidth]);
  /** What the links that match lead to. */
  const targets = (links: string) =>
    page.locator(links).evaluateAll(found => found.map(link => link.getAttribute('href') ?? ''));

  test('on a telephone nothing is wider than the page, however much is open', async () => {
    await page.goto(`${url}/api/docs`);
    expect(await widths()).toEqual([390, 390]);
    await page.locator('details').evaluateAll(found => {
      for (const details of found) details.setAttribute('open', '');
    });
    expect(await widths()).toEqual([390, 390]);
    await page.setViewportSize({ width: 1280, height: 800 });
    expect(await widths()).toEqual([1280, 1280]);
  });

  test('the topics are linked in the order in which a user learns them, in lines that wrap', async () => {
    await page.goto(`${url}/api/docs`);
    expect(await page.locator('nav a').allTextContents()).toEqual([
      'Hosts and sessions',
      'Commands',
      'Jobs',
      'Files of a host',
      'Videos',
      'Uploads',
      'Tables and arrays',
      'Projects',
      'Models',
      'Accounts',
      'Operations',
      'Schemas',
      'Errors',
    ]);
    const tops = await page
      .locator('nav a')
      .evaluateAll(links => links.map(link => link.getBoundingClientRect().top));
    expect(new Set(tops).size).toBeGreaterThan(1);
    expect(await page.locator('h2').allTextContents()).toEqual(
      await page.locator('nav a').allTextContents(),
    );
  });

  test('every link on it leads somewhere, and no id is given twice', async () => {
    await page.goto(`${url}/api/docs`);
    const ids = await page
      .locator('[id]')
      .evaluateAll(found => found.map(element => `#${element.id}`));
    expect(ids).toEqual([...new Set(ids)]);
    const links = await targets('a[href]');
    const places = links.filter(target => target.startsWith('#'));
    expect(places.length).toBeGreaterThan(100);
    expect([...new Set(places)].filter(target => !ids.includes(target))).toEqual([]);
    for (const target of new Set(links.filter(target => !places.includes(target))))
      expect((await fetch(new URL(target, page.url()))).status, target).toBe(200);
  });

  test('an operation that is named in the address is shown with what it takes, and an example', async () => {
    await page.goto(`${url}/api/docs#launchCommand`);
    const entry = page.locator('#launchCommand');
    await entry.waitFor({ state: 'visible' });
    const examples = await entry.locator('h4:text-is("Example") + pre').allTextContents();
    expect(JSON.parse(examples[0] ?? '')).toMatchObject({ command: 'uname -a' });
    expect(JSON.parse(examples[1] ?? '')).toMatchObject({ returncode: 0 });
    await entry.locator('a[href="#schema-NewCommand"]').first().click();
    await page.locator('#schema-NewCommand').waitFor({ state: 'visible' });
  });
});

describeStack(missingPrograms('chromium'), 'an operation is tried in /api/docs', form => {
  const { stack } = useStack(form);
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: findProgram('chromium'),
      args: ['--no-sandbox'],
    });
    page = await browser.newPage();
  });
  afterAll(() => browser?.close());

  /** Opens the operation, fills its fields in, sends it, and returns the answer once it is whole. */
  async function send(id: string, fields: Record<string, string> = {}): Promise<string> {
    const entry = page.locator(`#${id}`);
    // Another fragment of the same address would leave what was typed.
    await page.goto('about:blank');
    await page.goto(`${stack.url}/api/docs#${id}`);
    await page.locator('#login-for-tries').waitFor({ state: 'visible' });
    if (login) {
      await page.fill('#login-for-tries [name=user]', login.user);
      await page.fill('#login-for-tries [name=password]', login.password);
    }
    for (const [name, value] of Object.entries(fields))
      await entry.locator(`[name=${name}]`).fill(value);
    await entry.locator('button').click();
    await entry.locator('form[data-state=whole]').waitFor();
    return (await entry.locator('form pre').textContent()) ?? '';
  }
  let login: { user: string; password: string } | undefined;

  test('with a name and a password', async () => {
    login = { user: stack.username, password: 'wrong' };
    expect(await send('getCurrentUser')).toMatch(/^401 /);
    login = { user: stack.username, password: stack.password };
    expect(await send('getCurrentUser')).toMatch(/^200 OK\n.*\n\n\{\n {2}"username"/);
    expect(await send('listJobs', { limit: '0' })).toMatch(/^400 [\s\S]*limit/);
    const made = await send('createProject', { body: '{"name": "Tried in the page"}' });
    expect(made).toMatch(/^201 /);
    const pid = /"id": "(\w+)"/.exec(made)?.[1] ?? '';
    expect(await send('getProject', { pid })).toContain('"name": "Tried in the page"');
  });

  test("with the cookie of this browser's login, and nothing else", async () => {
    login = undefined;
    expect(await send('listProjects')).toMatch(/^401 /);
    const { username, password } = stack;
    await send('beginLogin', { body: JSON.stringify({ username, password }) });
    expect(await send('listProjects')).toMatch(/^200 [\s\S]*"Tried in the page"/);
    expect(await send('endLogin')).toMatch(/^204 /);
    expect(await send('listProjects')).toMatch(/^401 /);
  });
});
