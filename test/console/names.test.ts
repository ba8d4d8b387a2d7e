import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { logInToConsole, openConsole, useChromium } from '../harness/browser/console-page.ts';
import { expectNamed } from '../harness/browser/named-controls.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { addUser } from '../harness/clients/users.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

describeStack(missingPrograms('sshd', 'chromium'), 'names in the console', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: { WEBHOOK_PRIVATE: 'true' } });
  const browser = useChromium();
  let page: Page;
  let sid: string;
  let job: string;
  let failed: string;
  let project: string;
  let model: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    ({ id: job } = await launchAsync(client, sid, 'echo a line; echo another'));
    ({ id: failed } = await launchAsync(client, sid, 'exit 3'));
    await waitForEnd(client, job);
    await waitForEnd(client, failed);
    mkdirSync(join(sshd.home, 'study'));
    for (const name of ['rows.csv', 'other.txt'])
      writeFileSync(join(sshd.home, 'study', name), 'a,b\n1,2\n3,4\n');
    project = (await client.post<{ id: string }>('/api/projects', { name: 'Study' })).id;
    const made = { name: 'Run 7', 'model-type': 'simulation' };
    model = (await client.post<{ id: string }>(`/api/projects/${project}/models`, made)).id;
    await client.post(`/api/projects/${project}/models`, { ...made, name: 'Run 8' });
    await makeTable(client, { mid: model, aid: 'residuals', csv: 'step,time\n1,2\n3,4\n' });
    for (const aid of ['one', 'two'])
      await client.fetch(`/api/models/${model}/parameters/${aid}`, { method: 'PUT', body: '1' });
    for (const n of [1, 2]) await client.post(`/api/projects/${project}/bookmarks`, { n });
    for (const name of ['one', 'two']) {
      await client.post('/api/users/-/tokens', { name, scope: 'read' });
      await client.post('/api/webhooks', { url: `http://127.0.0.1:9/${name}` });
      await addUser(client);
    }
    // Later than the first one.
    await openSession(client, sshd);
    ({ page } = await openConsole(browser, stack.url, { path: 'run' }));
    await logInToConsole(page, stack);
  });

  const folder = () => join(sshd.home, 'study');
  const ofProject = (part: string) => `projects/${project}/${part}`;
  const ofModel = (part: string) => ofProject(`models/${model}/${part}`);
  /** Each page with what it shows when it is whole. */
  const PAGES: [name: string, path: () => string, sign: string][] = [
    ['run', () => `run?session=${sid}&job=${job}`, 'another'],
    ['batch', () => `run?session=${sid}&as=batch`, 'Memory a node'],
    ['jobs', () => 'jobs', 'exit 3'],
    ['job', () => `jobs/${job}`, 'another'],
    ['a job that failed', () => `jobs/${failed}`, 'exit status 3'],
    ['files', () => `files?session=${sid}&path=${folder()}&file=rows.csv`, 'changed'],
    ['a new video', () => `files?session=${sid}&path=${folder()}&make=video`, 'Frames'],
    ['projects', () => 'projects', 'Study'],
    ['models', () => ofProject('models'), 'Run 8'],
    ['bookmarks', () => ofProject('bookmarks'), 'Stored'],
    ['videos', () => ofProject('videos'), 'No video is kept here'],
    ['people', () => ofProject('people'), 'Writer'],
    ['settings of a project', () => ofProject('settings'), 'Description'],
    ['content', () => ofModel('content'), 'residuals'],
    ['upload', () => ofModel('upload'), 'Drop files'],
    ['table', () => ofModel('table?name=residuals&x=step&y=time'), '2 rows'],
    ['parameter', () => ofModel('parameter?name=one'), 'one'],
    ['settings of a model', () => ofModel('settings'), 'Marking'],
    ['overview', () => 'operate/overview', 'Jobs at once'],
    ['hosts', () => 'operate/hosts', 'SHA256'],
    ['users', () => 'operate/users', 'Administrator'],
    ['storage', () => 'operate/storage', 'Of all'],
    ['audit', () => 'operate/audit', 'session.open'],
    ['settings', () => 'operate/settings', 'PUBLIC_URL'],
    ['tokens', () => 'account/tokens', 'Expires'],
    ['webhooks', () => 'account/webhooks', 'Deliveries'],
    ['logins', () => 'account/hosts', 'Opened'],
    ['password', () => 'account/password', 'New password'],
    ['nothing', () => 'nowhere', 'Not found'],
  ];

  test.each(PAGES)('%s', async (_name, path, sign) => {
    await page.goto(`${stack.url}/console/${path()}`);
    await page
      .getByRole('main')
      .getByText(sign)
      .and(page.locator(':not(option)'))
      .first()
      .waitFor();
    await expectNamed(page);
  });

  const active = () =>
    page.evaluate<string>(
      `document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent`,
    );

  test('the end of a token is told, and the keys go on in the table', async () => {
    await page.goto(`${stack.url}/console/account/tokens`);
    const row = page.getByRole('row', { name: /^one / });
    await row.getByRole('button', { name: 'End one' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'End one?' });
    await expect.poll(active).toBe('Keep');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(active).toBe('End one');
    await page.keyboard.press('Enter');
    await dialog.getByRole('button', { name: 'End the token' }).click();
    await row.waitFor({ state: 'detached' });
    await page.getByRole('status', { name: 'Done' }).getByText('The token is ended.').waitFor();
    await expect.poll(active).toBe('Tokens');
    // The next key goes on from there.
    await page.keyboard.press('Tab');
    expect(await active()).toBe('End two');
  });

  test('where the last row goes, the keys go on in the page', async () => {
    await page.getByRole('button', { name: 'End two' }).click();
    const dialog = page.getByRole('dialog', { name: 'End two?' });
    await dialog.getByRole('button', { name: 'End the token' }).click();
    await page.getByText('No token yet').waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.localName')).toBe('main');
  });

  test('a job that is cancelled by keys says so, and keeps them in its page', async () => {
    const { id } = await launchAsync(client, sid, 'exec sleep 600');
    await page.goto(`${stack.url}/console/jobs/${id}`);
    await page.getByRole('status').getByText('Running').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('Cancelled').waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.localName')).toBe('main');
  });

  test('logins of one account on one host are told apart', async () => {
    await page.goto(`${stack.url}/console/run`);
    const field = page.getByRole('combobox', { name: 'Host' });
    await field.waitFor();
    const names = await field.getByRole('option').allTextContents();
    expect(names).toHaveLength(2);
    expect(new Set(names).size).toBe(2);
  });
});
