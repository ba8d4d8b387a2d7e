import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import {
  type ConsolePage,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { addHost, openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

/** What a proxy says instead of the service, which has begun. */
const PAGE = { contentType: 'text/html', body: '<h1>Not now</h1>' };

describeStack(missingPrograms('sshd', 'chromium', 'ffmpeg'), 'what the console sends', form => {
  const { stack, client, sshd } = useRemoteStack(form, { alone: 'counts its jobs' });
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
  const succeeds = () =>
    page.locator(':is(.run-head, .job-title) .badge', { hasText: 'Succeeded' }).waitFor();
  const countJobs = async (label: string) => {
    const { items } = await client.get<{ items: { label: string }[] }>('/api/jobs?limit=1000');
    return items.filter(job => job.label === label).length;
  };
  const openRun = async (command: string) => {
    await go(`run?session=${sid}`);
    await field().fill(command);
  };

  /** Sends what starts commands on, and holds its answers back until it is called. */
  const holdAnswers = async () => {
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    await page.route('**/api/remotes/launch', async route => {
      const response = await route.fetch();
      await held;
      await route.fulfill({ response });
    });
    return () => release();
  };
  const isAccepted = (command: string) =>
    expect
      .poll(() => page.evaluate("localStorage.getItem('windlass.commands')"))
      .toContain(command);

  test('a command whose answer was lost runs once, though the button is pressed again', async () => {
    const command = 'echo of a lost answer';
    let lost = 0;
    await page.route('**/api/remotes/launch', async route => {
      if (lost++ > 1) return route.continue();
      await route.fetch();
      return route.fulfill({ ...PAGE, status: 500 });
    });
    await openRun(command);
    await page.keyboard.press('Control+Enter');
    await page.getByRole('alert').getByText('500').waitFor();
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => lost).toBe(2);
    await page.getByRole('alert').getByText('500').waitFor();
    await page.reload();
    expect(await field().inputValue()).toBe(command);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await succeeds();
    expect(await countJobs(command)).toBe(1);
    // What was answered is done with: the next press is another run.
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(() => countJobs(command)).toBe(2);
  });

  test('a command that is accepted late takes nobody from another page, nor what is typed', async () => {
    const command = 'echo of a late answer';
    const release = await holdAnswers();
    await openRun(command);
    await page.keyboard.press('Control+Enter');
    await page.getByText('Starting …').waitFor();
    await field().fill('echo of the next one');
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    const before = page.url();
    release();
    await isAccepted(command);
    expect(page.url()).toBe(before);
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Run', exact: true }).click();
    expect(await field().inputValue()).toBe('echo of the next one');
    expect(await countJobs(command)).toBe(1);
  });

  test('a command that is accepted late leads nobody back from another login', async () => {
    const command = 'echo of a late answer elsewhere';
    const hostname = await addHost(client, sshd, { name: 'other' });
    const other = await openSession(client, sshd, { hostname });
    const release = await holdAnswers();
    await openRun(command);
    await page.keyboard.press('Control+Enter');
    await page.getByText('Starting …').waitFor();
    await page.getByLabel('Host', { exact: true }).selectOption(other);
    await page.getByLabel('Command on other').fill('echo of the other host');
    release();
    await isAccepted(command);
    const run = page.getByRole('button', { name: 'Run', exact: true });
    await expect.poll(() => run.isEnabled()).toBe(true);
    expect(new URL(page.url()).search).toBe(`?session=${other}`);
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.locator('.jobs tbody tr', { hasText: command }).waitFor();
    await page.getByRole('link', { name: 'Run', exact: true }).click();
    expect(await page.getByLabel('Command on other').inputValue()).toBe('echo of the other host');
    expect(await countJobs(command)).toBe(1);
  });

  test('a video whose answer was lost is made once, though the button is pressed again', async () => {
    await drawFrames({ folder: join(sshd.home, 'once'), count: 3 });
    let lost = 0;
    await page.route('**/api/remotes/*/videos', async route => {
      if (lost++ > 0) return route.continue();
      await route.fetch();
      return route.fulfill({ ...PAGE, status: 500 });
    });
    const place = { session: sid, path: join(sshd.home, 'once'), make: 'frame %d.dat' };
    await go(`files?${new URLSearchParams(place)}`);
    await page.getByRole('button', { name: 'Make the video' }).click();
    await page.getByRole('alert').getByText('500').waitFor();
    await page.getByRole('button', { name: 'Make the video' }).click();
    await page.waitForURL('**/console/jobs/*');
    await succeeds();
    const { items } = await client.get<{ items: unknown[] }>('/api/jobs?kind=video');
    expect(items).toHaveLength(1);
  });

  test('what may be made though no answer came is told, and listed', async () => {
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'of models' });
    for (const { what, path, posts, list } of [
      { what: 'project', path: 'projects', posts: '**/api/projects', list: 'Projects' },
      {
        what: 'model',
        path: `projects/${pid}/models`,
        posts: `**/api/projects/${pid}/models`,
        list: 'Models',
      },
      { what: 'token', path: 'account/tokens', posts: '**/api/users/-/tokens', list: 'Tokens' },
    ]) {
      await page.route(posts, async route => {
        if (route.request().method() !== 'POST') return route.continue();
        await route.fetch();
        return route.abort('connectionreset');
      });
      await go(path);
      await page
        .getByRole('button', { name: `New ${what}` })
        .first()
        .click();
      const dialog = page.getByRole('dialog', { name: `New ${what}` });
      await dialog.getByLabel('Name').fill('of a lost answer');
      await dialog.getByRole('button', { name: `Make the ${what}` }).click();
      const told = dialog.getByRole('alert');
      await told.getByText(`The ${what} may be made all the same.`).waitFor();
      expect(await told.textContent()).not.toMatch(/127|fetch|origin/i);
      const made = page.locator(`table[aria-label="${list}"] tbody tr`);
      await expect.poll(() => made.filter({ hasText: 'of a lost answer' }).count()).toBe(1);
      await page.unrouteAll();
    }
    // What the service refuses is not made.
    await page.route('**/api/users/-/tokens', async route => {
      if (route.request().method() !== 'POST') return route.continue();
      return route.fulfill({ status: 409, json: { code: 'conflict', detail: 'There are many.' } });
    });
    await page.getByRole('button', { name: 'Make the token' }).click();
    await page.getByRole('alert').getByText('There are many.').waitFor();
    expect(await page.getByText('all the same').count()).toBe(0);
  });

  test('a double click sends once, and answers no question that it asks', async () => {
    const command = 'echo of two clicks';
    await openRun(command);
    await page.getByRole('button', { name: 'Run', exact: true }).dblclick({ delay: 100 });
    await succeeds();
    expect(await countJobs(command)).toBe(1);
    await page.getByRole('button', { name: 'Run again' }).dblclick({ delay: 100 });
    await page.waitForURL(/\/jobs\/\w+$/);
    await succeeds();
    expect(await countJobs(command)).toBe(2);
    await client.post('/api/users', { username: 'ada', password: 'a long enough password' });
    await go('operate/users');
    await page.getByRole('button', { name: 'Change ada' }).click();
    await page.getByRole('button', { name: 'Remove this user' }).dblclick({ delay: 100 });
    await page.getByText('Really?').waitFor();
    await page.getByRole('button', { name: 'Keep' }).click();
    expect(await client.get('/api/users/ada')).toMatchObject({ username: 'ada' });
  });

  test('keys that are held run a command once', async () => {
    const command = 'echo of held keys';
    await openRun(command);
    await page.keyboard.down('Control');
    await page.keyboard.down('Enter');
    await succeeds();
    for (const _ of [1, 2, 3]) await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    await page.keyboard.up('Control');
    await expect
      .poll(() => page.getByRole('button', { name: 'Run', exact: true }).isEnabled())
      .toBe(true);
    expect(await countJobs(command)).toBe(1);
  });
});
