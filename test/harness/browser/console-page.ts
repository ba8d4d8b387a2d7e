import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core';
import { expect } from 'vitest';
import { findProgram } from '../../../scripts/programs.ts';
import type { Stack } from '../stacks/stack.ts';
import { useStarted } from '../stacks/use-stack.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A Chromium, without what it does by itself in the background. */
export function useChromium(): Browser {
  return useStarted(async () => {
    const browser = await chromium.launch({
      executablePath: findProgram('chromium'),
      args: [
        '--no-sandbox',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
        '--disable-quic',
      ],
    });
    return Object.assign(browser, { stop: () => browser.close() });
  });
}

export interface ConsolePage {
  page: Page;
  /** What the page's scripts threw, what its policy refused, and what it loaded from elsewhere. */
  faults: string[];
}

/** A window with the console in it, at a path below /console/, of somebody who is not logged in. */
export async function openConsole(
  browser: Browser,
  url: string,
  { path = '', ...options }: BrowserContextOptions & { path?: string } = {},
): Promise<ConsolePage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults: string[] = [];
  page.on('pageerror', error => faults.push(`threw: ${error.message}`));
  page.on('console', line => {
    if (/Content.Security.Policy|Trusted/i.test(line.text())) faults.push(line.text());
  });
  page.on('request', request => {
    // What the page itself has made is its own.
    if (
      !request
        .url()
        .replace(/^blob:/, '')
        .startsWith(url)
    )
      faults.push(`loaded: ${request.url()}`);
  });
  await page.goto(`${url}/console/${path}`);
  return { page, faults };
}

/** Fills the login page in, and waits until it is gone. */
export async function logInToConsole(
  page: Page,
  { username, password }: Pick<Stack, 'username' | 'password'>,
): Promise<void> {
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}

/** Chooses one of many by its name, as the console lets people do. */
export async function chooseByName(
  within: Page | Locator,
  { label, name }: { label: string; name: string },
): Promise<void> {
  const field = within.getByRole('combobox', { name: label, exact: true });
  await field.click();
  await field.fill(name);
  await within.getByRole('option', { name, exact: true }).click();
}

/** Holds the page's requests of these addresses until the returned function is called. */
export async function holdRequests(page: Page, url: string | RegExp): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>(resolve => {
    release = resolve;
  });
  await page.route(url, async route => {
    await held;
    await route.continue();
  });
  return release;
}

/** What axe-core finds on the page as it is, in both themes: nothing. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const found = await page.evaluate<{ id: string; nodes: { html: string }[] }[]>(
      'axe.run().then(({ violations }) => violations)',
    );
    const told = found.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]);
    expect([page.url(), colorScheme, told]).toEqual([page.url(), colorScheme, []]);
  }
}

/** Nothing is wider than the window, at its width and at those of telephones. */
export async function expectToFit(page: Page): Promise<void> {
  const before = page.viewportSize();
  // 640 and 320: a window of 1280 at 200 % and 400 % (WCAG 1.4.10). 390 and 360: telephones.
  for (const width of [1280, 640, 390, 360, 320]) {
    await page.setViewportSize({ width, height: 844 });
    const widest = await page.locator('html').evaluate(html => html.scrollWidth);
    expect([page.url(), widest]).toEqual([page.url(), width]);
  }
  if (before) await page.setViewportSize(before);
}
