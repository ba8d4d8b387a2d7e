import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import {
  type ConsolePage,
  expectAccessible,
  expectToFit,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { addUser } from '../harness/clients/users.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

/** How long a wait is before words stand there. */
const WORDS_MS = 300;
/** A slow link: its round trip, and bytes a second. */
const SLOW = { latency: 400, throughput: 50_000 };

describeStack(missingPrograms('sshd', 'chromium'), 'what stands around all pages', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const browser = useChromium();
  let sid: string;
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    opened = await openConsole(browser, stack.url, { path: 'jobs' });
    page = opened.page;
    await logInToConsole(page, stack);
  });

  const go = (path: string) => page.goto(`${stack.url}/console/${path}`);
  const pages = () => page.getByRole('navigation', { name: 'Pages' });
  const command = () => page.locator('.command > textarea');
  const expectUsable = async () => {
    await expectAccessible(page);
    await expectToFit(page);
  };
  /** Ends the login as the service ends one that was not used for long. */
  const endLogin = () => page.context().clearCookies();

  test('a page that throws while it is drawn is told, and the others are a click away', async () => {
    const { id } = await launchAsync(client, sid, 'true');
    await waitForEnd(client, id);
    // No service of ours answers so; what stands between may.
    await page.route(`**/api/jobs/${id}`, route => route.fulfill({ json: { id, label: 7 } }));
    await go(`jobs/${id}`);
    await page.getByRole('heading', { name: 'This page cannot be shown' }).waitFor();
    expect(await page.title()).toContain('Something went wrong');
    await expectUsable();
    await page.getByText('What was thrown').click();
    await page.locator('.thrown').getByText('Error').waitFor();
    await page.unroute(`**/api/jobs/${id}`);
    await pages().getByRole('link', { name: 'Jobs' }).click();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    await page.goBack();
    await page.getByRole('region', { name: 'Timeline' }).waitFor();
  });

  test.each(['nothing', 'jobs/a/b', 'operate/constructor', 'projects/x/toString'])(
    'an address of no page is told: %s',
    async path => {
      await go(path);
      await page.getByText('There is no such page').waitFor();
      await expectAccessible(page);
    },
  );

  test('a page that is gone to is announced, and the keys go on in it', async () => {
    await go('run');
    await command().waitFor();
    await pages().getByRole('link', { name: 'Files' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('[aria-live=polite]', { hasText: /^Files/ }).waitFor();
    expect(await page.evaluate('document.activeElement.localName')).toBe('main');
    expect(await page.title()).toMatch(/^Files|files/);
  });

  test('what is typed is still there after a login that was made again meanwhile', async () => {
    await go(`run?session=${sid}`);
    await command().fill('half of a command');
    await page.getByText('Options').click();
    await page.getByLabel('Folder').fill('/half/of/a/folder');
    await page.getByRole('button', { name: 'Log in to a host' }).click();
    await page.getByLabel('User name there').fill('half of a name');
    await endLogin();
    await page.getByText('Your login has ended.').waitFor();
    expect(await command().isVisible()).toBe(false);
    await expectUsable();
    for (const key of ['Escape', 'Escape']) await page.keyboard.press(key);
    const again = page.getByRole('dialog', { name: 'Log in again' });
    expect(await again.getByLabel('User name').inputValue()).toBe(stack.username);
    await again.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await again.getByText('password is wrong').waitFor();
    await again.getByLabel('Password').fill(stack.password);
    await page.keyboard.press('Enter');
    await again.waitFor({ state: 'detached' });
    expect(await page.getByLabel('User name there').inputValue()).toBe('half of a name');
    // The keys go on where they were.
    await expect
      .poll(() => page.getByLabel('User name there').and(page.locator(':focus')).count())
      .toBe(1);
    await page.keyboard.press('Escape');
    expect(await command().inputValue()).toBe('half of a command');
    expect(await page.getByLabel('Folder').inputValue()).toBe('/half/of/a/folder');
    expect(await page.title()).toContain('Run');
    await command().fill('');
  });

  test('a command that was not run for a login that had ended is run by the button', async () => {
    await go(`run?session=${sid}`);
    await command().fill('echo run at last');
    await page.getByLabel('Folder').fill('');
    const launches = '**/api/remotes/launch';
    await page.route(launches, async route => {
      // As of nobody who is logged in.
      const answer = await fetch(route.request().url(), { method: 'POST' });
      await route.fulfill({ status: answer.status, json: await answer.json() });
    });
    const run = () => page.getByRole('button', { name: 'Run', exact: true }).click();
    await run();
    await page.getByRole('alert').getByText('It was not run: press Run again.').waitFor();
    await page.unroute(launches);
    await run();
    await page.locator('.log-row', { hasText: 'run at last' }).waitFor();
  });

  test('JSON that was typed is stored after a login that was made again', async () => {
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'Drafts' });
    const given = { name: 'model', 'model-type': 'any' };
    const models = `/api/projects/${pid}/models`;
    const { id: mid } = await client.post<{ id: string }>(models, given);
    await go(`projects/${pid}/models/${mid}/parameter`);
    await page.getByLabel('Name').fill('seed');
    await page.getByLabel('Value').fill('{"seed": 12345678901234567890}');
    await endLogin();
    // It is refused, and so it is known at once that nobody is logged in.
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByText('Your login has ended.').waitFor();
    await page.getByLabel('Password').fill(stack.password);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByRole('heading', { name: 'seed' }).waitFor();
    const stored = await client.fetch(`/api/models/${mid}/parameters/seed`);
    expect(await stored.text()).toBe('{"seed": 12345678901234567890}');
    await client.delete(`/api/projects/${pid}`);
  });

  test('a log goes on after a login that was made again', async () => {
    const { id } = await launchAsync(client, sid, 'echo before; sleep 600');
    await go(`jobs/${id}`);
    await page.locator('.log-row', { hasText: 'before' }).waitFor();
    await endLogin();
    await page.getByText('Your login has ended.').waitFor();
    await page.getByLabel('Password').fill(stack.password);
    await page.keyboard.press('Enter');
    await pages().waitFor();
    await client.delete(`/api/jobs/${id}`);
    await page.locator('.badge', { hasText: 'Cancelled' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('a logout, and the login of another user, are those of all tabs', async () => {
    const { login } = await addUser(client);
    await go('run');
    await command().fill('echo of the first user');
    const second = await page.context().newPage();
    await second.goto(`${stack.url}/console/jobs`);
    await second.getByRole('button', { name: 'Log out', exact: true }).click();
    await second.getByRole('dialog').getByRole('button', { name: 'Log out' }).click();
    await second.getByLabel('User name').waitFor();
    await page.getByLabel('User name').waitFor();
    // Nothing of the first one waits behind it.
    expect(await page.locator('textarea').count()).toBe(0);
    await logInToConsole(second, login);
    await pages().waitFor();
    await page.locator('.who', { hasText: login.username }).waitFor();
    await page.getByText('First steps').or(page.locator('.steps')).first().waitFor();
    expect(await page.locator('main').textContent()).not.toContain('of the first user');
    await second.close();
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Log out', exact: true }).click();
    await page.locator('main').getByRole('alert').waitFor();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Log out', exact: true }).click();
    await logInToConsole(page, stack);
  });

  test('a logout asks where something is lost by it, in this tab or in another one', async () => {
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'Unsaved' });
    const given = { name: 'model', 'model-type': 'any' };
    const models = `/api/projects/${pid}/models`;
    const { id: mid } = await client.post<{ id: string }>(models, given);
    const logOut = (tab: Page) =>
      tab.getByRole('banner').getByRole('button', { name: 'Log out', exact: true }).click();
    const question = (tab: Page) => tab.getByRole('dialog', { name: 'Log out?' });
    const value = () => page.getByLabel('Value').inputValue();
    await go(`projects/${pid}/models/${mid}/parameter`);
    await page.getByLabel('Name').fill('seed');
    await page.getByLabel('Value').fill('{"half": ');
    await logOut(page);
    await question(page).getByText('not stored').waitFor();
    await expectUsable();
    await question(page).getByRole('button', { name: 'Keep' }).click();
    expect(await value()).toBe('{"half": ');
    const second = await page.context().newPage();
    await second.goto(`${stack.url}/console/jobs`);
    await logOut(second);
    await question(second).getByText('In another tab').waitFor();
    await question(second).getByRole('button', { name: 'Keep' }).click();
    expect(await value()).toBe('{"half": ');
    await page.getByLabel('Value').fill('');
    await page.getByLabel('Name').fill('');
    await go('run');
    await command().fill('half of a command');
    await logOut(second);
    await question(second).getByRole('button', { name: 'Log out' }).click();
    await second.getByLabel('User name').waitFor();
    await logInToConsole(page, stack);
    expect(await command().inputValue()).toBe('');
    await second.close();
    await client.delete(`/api/projects/${pid}`);
  });

  test('a network that is unreachable is told, and its return', async () => {
    await go('jobs');
    await page.locator('.jobs tbody tr').first().waitFor();
    await page.context().setOffline(true);
    await page.getByText('The service does not answer.').waitFor();
    await expectAccessible(page);
    expect(await page.locator('.jobs tbody tr').count()).toBeGreaterThan(0);
    await page.context().setOffline(false);
    await page.getByText('Connected again.').waitFor();
  });

  test('on a slow link each wait has words, and the pages come', async () => {
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Network.enable');
    await devtools.send('Network.setCacheDisabled', { cacheDisabled: true });
    await devtools.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: SLOW.latency,
      downloadThroughput: SLOW.throughput,
      uploadThroughput: SLOW.throughput,
    });
    await page.goto(`${stack.url}/console/run`, { waitUntil: 'commit' });
    await command().waitFor();
    for (const [name, sign] of [
      ['Jobs', page.locator('.jobs tbody tr').first()],
      ['Files', page.getByRole('listbox', { name: 'Files and folders' })],
      ['Projects', page.getByText('No project yet').or(page.locator('table')).first()],
    ] as const) {
      expect([name, await page.evaluate(hasWordsInTime(name))]).toEqual([name, true]);
      await sign.waitFor();
    }
    await devtools.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: -1,
    });
    await devtools.detach();
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });

  test.each([-3_600_000, 3_600_000])(
    'times are told by the service’s clock where the machine’s is %d ms off',
    async ahead => {
      const { id } = await launchAsync(client, sid, 'sleep 60');
      const { page: skewed } = await openConsole(browser, stack.url);
      await skewed.context().addInitScript(ms => {
        const now = Date.now.bind(Date);
        Date.now = () => now() + ms;
      }, ahead);
      await skewed.reload();
      await logInToConsole(skewed, stack);
      await skewed.goto(`${stack.url}/console/jobs?within=hour&kind=command`);
      const row = skewed.getByRole('row').filter({ hasText: 'sleep 60' }).first();
      await row.waitFor();
      await expect.poll(() => row.textContent()).toMatch(/(just now|\d0 seconds ago)[1-9]\d? s$/);
      await client.delete(`/api/jobs/${id}`);
      await skewed.context().close();
    },
  );
});

/**
 * Runs in the page: goes to another page, and tells whether words stand there in time. That is by a timer of this page, begun
 * once the other one is drawn: what keeps the page's own timers waiting on a busy machine keeps this one as long.
 */
const hasWordsInTime = (name: string) => `(async () => {
  const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
  const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
  const link = [...document.querySelectorAll('.nav a')].find(a => a.textContent === '${name}');
  link.click();
  await frame();
  await frame();
  await sleep(0);
  await sleep(${WORDS_MS});
  await frame();
  return document.querySelector('main').innerText.trim() !== '';
})()`;
