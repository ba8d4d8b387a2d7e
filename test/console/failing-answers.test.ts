import type { Page, Route } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import {
  type ConsolePage,
  expectAccessible,
  expectToFit,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { launchAsync, openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

/** What a proxy says instead of the service. */
const PAGE = { contentType: 'text/html', body: '<h1>Not now</h1>' };

describeStack(missingPrograms('sshd', 'chromium'), 'a console whose answers fail', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const browser = useChromium();
  let sid: string;
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    opened = await openConsole(browser, stack.url);
    page = opened.page;
    await logInToConsole(page, stack);
  });
  afterEach(() => page.unrouteAll());

  const go = (path: string) => page.goto(`${stack.url}/console/${path}`);
  const field = () => page.locator('.command > textarea');
  const told = () => page.locator('.connection');
  const succeeds = () =>
    page.locator(':is(.run-head, .job-title) .badge', { hasText: 'Succeeded' }).waitFor();
  const openRun = async (command: string) => {
    await go(`run?session=${sid}`);
    await field().fill(command);
  };

  test.each([
    ['a failure of a proxy', { ...PAGE, status: 500 }],
    ['the page of a network that asks for a login', { ...PAGE, status: 200 }],
  ])('output goes on by itself after %s', async (_name, answer) => {
    let failed = 0;
    await page.route('**/api/jobs/*/events', route => {
      if (failed++ > 0) return route.continue();
      return route.fulfill(answer);
    });
    await openRun('echo first; sleep 1; echo last');
    await page.keyboard.press('Control+Enter');
    const panel = page.getByRole('region', { name: 'Output', exact: true });
    await panel.getByRole('alert').getByText('asked for again').waitFor();
    await expect.poll(() => page.locator('.log-text').allTextContents()).toEqual(['first', 'last']);
    await succeeds();
    expect(await panel.getByRole('alert').count()).toBe(0);
  });

  test.each([
    ['failures of a proxy', (route: Route) => route.fulfill({ ...PAGE, status: 500 })],
    ['pages of a network', (route: Route) => route.fulfill(PAGE)],
    ['silence', () => {}],
  ])('what is shown is said to be old after %s, until an answer comes', async (_name, fail) => {
    const { id } = await launchAsync(client, sid, 'sleep 60');
    await go(`jobs/${id}`);
    await page.getByText('Running').waitFor();
    await page.route('**/api/**', fail);
    await told()
      .getByText(/may be old|does not answer/)
      .waitFor({ timeout: 60_000 });
    await expectAccessible(page);
    await expectToFit(page);
    await client.delete(`/api/jobs/${id}`);
    await page.unrouteAll();
    await page.getByText('Cancelled', { exact: true }).first().waitFor();
    await expect.poll(() => told().count()).toBe(0);
  });

  test('a service that asks to come later is not told as one that is unreachable', async () => {
    await client.post('/api/projects', { name: 'Tides' });
    let asked = 0;
    const busy = { status: 503, json: { code: 'unavailable', detail: 'Come later.' } };
    await page.route('**/api/projects?*', route =>
      asked++ > 0 ? route.continue() : route.fulfill(busy),
    );
    await go('projects');
    await page.getByRole('table', { name: 'Projects' }).waitFor();
    expect(asked).toBeGreaterThan(1);
    // Its return would be told for some seconds.
    expect(await told().allTextContents()).toEqual([]);
  });

  test('a page that got no answer asks again by itself', async () => {
    await client.post('/api/projects', { name: 'Waves' });
    let failed = 0;
    await page.route('**/api/projects?*', route => {
      if (failed++ > 0) return route.continue();
      return route.fulfill({ ...PAGE, status: 500 });
    });
    await go('projects');
    await page.getByRole('alert').getByText('500').waitFor();
    await page.getByRole('table', { name: 'Projects' }).waitFor();
  });
});
