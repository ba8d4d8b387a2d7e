import { createHash } from 'node:crypto';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { formatBytes } from '../../console/src/ui/format-bytes.ts';
import { Client } from '../../servers/api-client.ts';
import {
  type ConsolePage,
  chooseByName,
  expectAccessible,
  expectToFit,
  holdRequests,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { addHost, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

const PASSWORD = 'a long enough password';

const AUTHORITY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';

describeStack(missingPrograms('sshd', 'chromium'), 'what administrators see', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const database = useStackDatabase(stack);
  const browser = useChromium();
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    opened = await openConsole(browser, stack.url, { path: 'operate' });
    page = opened.page;
    await logInToConsole(page, stack);
  });

  const show = (part: string) =>
    page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: part }).click();
  const rowOf = (name: string) => page.getByRole('row').filter({ hasText: name });
  /** What has the focus, by its name. */
  const focused = () =>
    page.evaluate<string>(
      'document.activeElement.ariaLabel ?? document.activeElement.textContent.slice(0, 40)',
    );
  const expectUsable = async () => {
    await expectAccessible(page);
    await expectToFit(page);
  };

  test('workers are drained and take jobs again', async () => {
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/operate/overview');
    await page.getByRole('button', { name: 'Drain' }).first().click();
    await page.getByText('Takes no more').waitFor();
    await page.getByRole('button', { name: 'Take jobs again' }).click();
    await page.getByText('Takes no more').waitFor({ state: 'detached' });
  });

  test('how jobs fared is drawn, and told step by step', async () => {
    const makeEarlier = (by: string) => database`update jobs
      set created = created - ${by}::interval, started = started - ${by}::interval,
        finished = finished - ${by}::interval where finished is not null`;
    // Other tests may have done something on this stack.
    await makeEarlier('2 days');
    await database`delete from job_statistics`;
    const sid = await openSession(client, sshd);
    for (const command of ['true', 'true', 'exec sleep 600']) {
      const { id } = await launchAsync(client, sid, command);
      if (command !== 'true') await client.delete(`/api/jobs/${id}`);
      await waitForEnd(client, id);
    }
    // As if it had been a while ago: a minute is counted when it is over.
    await makeEarlier('30 minutes');
    await database`update job_statistics_progress set ended_until = ended_until - interval '1 hour'`;
    await page.getByText('Hour', { exact: true }).click();
    expect(new URL(page.url()).search).toBe('?range=hour');
    const ended = page.getByRole('slider', { name: 'Jobs that ended' });
    const told = () => ended.getAttribute('aria-valuetext');
    await expect
      .poll(
        async () => {
          await page.reload();
          await ended.waitFor();
          return told();
        },
        { timeout: 60_000, interval: 2_000 },
      )
      .toMatch(/^in all: Failed 0, Cancelled [1-9]\d*, Succeeded [1-9]/);
    expect(await page.locator('.plot-column').count()).toBeGreaterThan(0);
    await page.getByLabel('Kind of jobs').selectOption('command');
    await expect.poll(told).toBe('in all: Failed 0, Cancelled 1, Succeeded 2');
    await ended.focus();
    await page.keyboard.press('ArrowLeft');
    await expect.poll(told).toMatch(/^\d+:\d\d.*: Failed 0, Cancelled 0, Succeeded 0$/);
    await expectUsable();
  });

  test('a host is added once its keys were compared, and given to some users', async () => {
    await show('Hosts');
    await page.getByRole('button', { name: 'Add a host' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Name').fill('lab');
    await dialog.getByLabel('Address', { exact: true }).fill(sshd.host);
    await dialog.getByLabel('Port').fill(String(sshd.port));
    await dialog.getByRole('button', { name: 'See its keys' }).click();
    const refused = dialog.getByRole('alert');
    await refused.waitFor();
    expect(await refused.textContent()).toContain('private');
    await dialog.getByText('Its address is in a private network').click();
    await dialog.getByRole('button', { name: 'See its keys' }).click();
    const fingerprint = await dialog.locator('.fingerprints li').first().textContent();
    expect(fingerprint).toMatch(/^ed25519 SHA256:/);
    await expect.poll(focused).toBe('Compare its keys');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Back' }).click();
    await expect.poll(() => dialog.getByLabel('Name').and(page.locator(':focus')).count()).toBe(1);
    await page.keyboard.press('Enter');
    await dialog.locator('.fingerprints li').first().waitFor();
    expect((await client.get<{ items: unknown[] }>('/api/hosts')).items).toHaveLength(1);
    await dialog.getByRole('button', { name: 'pin them' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await rowOf('lab').textContent()).toContain('SHA256:');
    await rowOf('lab').getByRole('button', { name: 'Change' }).click();
    await dialog.getByRole('button', { name: 'See what it shows now' }).click();
    await dialog.getByText('still has a pinned key').waitFor();
    await dialog.getByText('These users').click();
    const names = ['lise', 'emmy'];
    for (const username of names) await client.post('/api/users', { username, password: PASSWORD });
    await dialog.getByLabel('User names').fill('lise emmy nobody');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('there is no user nobody').waitFor();
    await expectAccessible(page);
    await dialog.getByLabel('User names').fill('lise emmy');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => rowOf('lab').textContent()).toContain('lise, emmy');
    for (const username of names) await client.delete(`/api/users/${username}`);
    await expectUsable();
    await rowOf('lab').getByRole('button', { name: 'Change' }).click();
    await dialog.getByRole('button', { name: 'Remove this host' }).click();
    await dialog.getByRole('button', { name: 'Remove lab' }).click();
    await rowOf('lab').waitFor({ state: 'detached' });
  });

  test('a host behind another one is added with its keys, and its way is changed', async () => {
    await show('Hosts');
    await page.getByRole('button', { name: 'Add a host' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Name').fill('node');
    await dialog.getByLabel('Address', { exact: true }).fill('node1.cluster');
    const through = dialog.getByRole('combobox', { name: 'Reached through' });
    await through.fill('ho');
    await dialog.getByRole('button', { name: 'See its keys' }).click();
    await dialog.getByText('Choose one of the list.').waitFor();
    expect(await through.and(page.locator(':focus')).count()).toBe(1);
    await chooseByName(dialog, { label: 'Reached through', name: 'host' });
    await dialog.getByLabel('Its keys').fill('no key');
    await dialog.getByRole('button', { name: 'Add the host' }).click();
    await dialog.getByRole('alert').waitFor();
    const authority = `@cert-authority *.cluster ${AUTHORITY}`;
    await dialog.getByLabel('Its keys').fill(`${sshd.hostKey} root@node1\n${authority} the CA\n`);
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Add the host' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await rowOf('node').textContent()).toContain('node1.cluster:22 through host');
    expect(await client.get('/api/hosts/node')).toMatchObject({
      jump: 'host',
      keys: [sshd.hostKey, authority],
    });
    const pins = rowOf('node').locator('.fingerprints li');
    expect(await pins.last().textContent()).toMatch(/^authority for \*\.cluster SHA256:/);
    await rowOf('node').getByRole('button', { name: 'Change' }).click();
    await dialog.getByText('is not seen from here').waitFor();
    expect(await dialog.textContent()).not.toContain('/api/');
    expect(await dialog.getByRole('button', { name: 'See what it shows now' }).count()).toBe(0);
    await expectAccessible(page);
    await dialog.getByRole('combobox', { name: 'Reached through' }).click();
    await dialog.getByRole('option', { name: 'No other host' }).click();
    await dialog.getByText('Sessions that are open on node end').waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => rowOf('node').textContent()).not.toContain('through');
    await client.delete('/api/hosts/node');
  });

  test('a host that has moved is followed, once it is said that its sessions end', async () => {
    const gone = `localhost:${sshd.port}`;
    await addHost(client, sshd, { name: 'moved', address: 'localhost' });
    const sid = await openSession(client, sshd, { hostname: 'moved' });
    await page.reload();
    await rowOf(gone).getByRole('button', { name: 'Change' }).click();
    const dialog = page.locator('dialog');
    expect(await dialog.getByText('Sessions that are open on moved end').count()).toBe(0);
    await dialog.getByLabel('Address', { exact: true }).fill(sshd.host);
    await dialog.getByText('Sessions that are open on moved end').waitFor();
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await rowOf(gone).waitFor({ state: 'detached' });
    await expect(client.get(`/api/remotes/${sid}`)).rejects.toThrow('Host changed');
    await openSession(client, sshd, { hostname: 'moved' });
  });

  test('what another administrator changed of a host meanwhile is not undone', async () => {
    const put = async (changes: object) => {
      const body = JSON.stringify(changes);
      expect((await client.fetch('/api/hosts/shared', { method: 'PUT', body })).status).toBe(200);
    };
    const names = ['emmy', 'lise', 'hedy'];
    for (const username of names) await client.post('/api/users', { username, password: PASSWORD });
    await addHost(client, sshd, { name: 'shared' });
    await put({ users: ['emmy'] });
    await page.reload();
    const dialog = page.locator('dialog');
    const change = () => rowOf('shared').getByRole('button', { name: 'Change' }).click();
    await change();
    await dialog.getByLabel('User names').waitFor();
    await put({ users: ['lise'] });
    await dialog.getByText('Commands run by the agent').click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await client.get('/api/hosts/shared')).toMatchObject({ users: ['lise'], agent: false });
    // It shows what is stored by now, however lately it was looked at.
    await put({ users: ['lise', 'hedy'] });
    await change();
    expect(await dialog.getByLabel('User names').inputValue()).toBe('lise, hedy');
    await put({ users: ['hedy'] });
    await dialog.getByLabel('User names').fill('lise, hedy, emmy');
    await dialog.getByRole('button', { name: 'Save' }).click();
    expect(await dialog.getByRole('alert').textContent()).toContain('changed its users meanwhile');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(await client.get('/api/hosts/shared')).toMatchObject({ users: ['hedy'] });
    await client.delete('/api/hosts/shared');
    for (const username of names) await client.delete(`/api/users/${username}`);
  });

  test('a user is added, disabled and enabled, and their tokens end', async () => {
    await show('Users');
    await page.getByRole('button', { name: 'Add a user' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByLabel('User name').fill('grace');
    await dialog.getByLabel('First password').fill(PASSWORD);
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Add the user' }).click();
    await dialog.waitFor({ state: 'detached' });
    const login = (method: string, path: string, json?: object) =>
      fetch(`${stack.url}${path}`, {
        method,
        headers: {
          Authorization: `Basic ${Buffer.from(`grace:${PASSWORD}`).toString('base64')}`,
          ...(json && { 'Content-Type': 'application/json' }),
        },
        body: json && JSON.stringify(json),
      });
    const made = await login('POST', '/api/users/-/tokens', { name: 'notebook', scope: 'read' });
    expect(made.status).toBe(201);
    expect(await rowOf('grace').textContent()).toContain('0 bytes');
    await rowOf('grace').getByRole('button', { name: 'Change' }).click();
    await dialog.getByText('reads only, never used').waitFor();
    expect(await focused()).toMatch(/^Make an administrator/);
    await expectUsable();
    await dialog.getByRole('button', { name: 'End the token notebook' }).click();
    await dialog.getByText('None: no program').waitFor();
    // One click changes nothing.
    await dialog.getByRole('button', { name: 'Make an administrator …' }).click();
    await dialog.getByText('May then add hosts').waitFor();
    await dialog.getByRole('button', { name: 'Keep' }).click();
    expect(await client.get('/api/users/grace')).toMatchObject({ administrator: false });
    await dialog.getByRole('button', { name: 'Disable …' }).click();
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Disable', exact: true }).click();
    await dialog.getByText('Cannot log in.').waitFor();
    expect(await focused()).toBe('Role');
    expect((await login('GET', '/api/users/-')).status).toBe(401);
    await dialog.getByRole('button', { name: 'Enable' }).click();
    await dialog.getByText('Is a user.').waitFor();
    await dialog.getByRole('button', { name: 'Remove this user' }).click();
    await expect.poll(focused).toBe('Remove');
    await dialog.getByRole('button', { name: 'Remove grace' }).click();
    await rowOf('grace').waitFor({ state: 'detached' });
  });

  test('whoever removes a user gives away the projects that this user alone holds', async () => {
    const add = async (username: string) => {
      await client.post('/api/users', { username, password: PASSWORD });
      return new Client(stack.url, username, PASSWORD);
    };
    const [joan, heir] = [await add('joan'), await add('heir')];
    const { id } = await joan.post<{ id: string }>('/api/projects', { name: 'left' });
    // The table is kept for half a minute.
    await page.reload();
    await show('Users');
    await rowOf('joan').getByRole('button', { name: 'Change' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByRole('button', { name: 'Remove this user' }).click();
    await dialog.getByText('Nobody else may change 1 project of joan.').waitFor();
    const remove = dialog.getByRole('button', { name: 'Remove joan' });
    const field = dialog.getByRole('combobox', { name: 'Give them to' });
    expect(await remove.isDisabled()).toBe(true);
    await field.click();
    await page.keyboard.type('hei');
    await dialog.getByRole('option', { name: 'heir' }).waitFor();
    await page.keyboard.press('Tab');
    await dialog.getByText('Choose one of the list.').waitFor();
    expect(await field.inputValue()).toBe('hei');
    expect(await remove.isDisabled()).toBe(true);
    await expectUsable();
    await dialog.getByText('they are deleted with all data').click();
    expect(await remove.isDisabled()).toBe(false);
    await dialog.getByText('they are deleted with all data').click();
    await field.click();
    await dialog.getByRole('option', { name: 'heir' }).click();
    await field.click();
    await page.keyboard.type('ada');
    // The text is another one than what is chosen.
    await remove.click();
    expect(await joan.get(`/api/projects/${id}`)).toMatchObject({ name: 'left' });
    await field.fill('HEIR');
    await page.keyboard.press('Tab');
    await expect.poll(() => field.inputValue()).toBe('heir');
    await remove.click();
    await dialog.waitFor({ state: 'detached' });
    expect(await heir.get(`/api/projects/${id}`)).toMatchObject({ role: 'administrator' });
    await client.delete('/api/users/heir');
  });

  test('who stores the most stands first', async () => {
    const stored = await client.post<{ id: string }>('/api/projects', { name: 'Stored' });
    const bookmark = { text: 'x'.repeat(300_000) };
    await client.post(`/api/projects/${stored.id}/bookmarks`, bookmark);
    await show('Storage');
    const first = page.getByRole('row').nth(1);
    await expect.poll(() => first.textContent()).toContain(stack.username);
    // Other tests may have stored something on this stack.
    const { storage } = await client.get<{ storage: { bytes: number } }>('/api/users/-');
    expect(storage.bytes).toBeGreaterThan(290_000);
    expect(await first.textContent()).toContain(`${formatBytes(storage.bytes)}100 %No limit`);
    await expectUsable();
    await client.delete(`/api/projects/${stored.id}`);
  });

  test('what is done with a row stays in sight on a telephone', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    for (const part of ['Users', 'Hosts']) {
      await show(part);
      const { x = 0, width = 390 } =
        (await page
          .getByRole('button', { name: /^Change/ })
          .first()
          .boundingBox()) ?? {};
      expect(x + width).toBeLessThan(390);
      await expectUsable();
    }
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  test('the audit leads from a command to its job', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'echo audited');
    await waitForEnd(client, id);
    await show('Audit');
    await page.getByLabel('Action').selectOption('command');
    const digest = createHash('sha256').update('echo audited').digest('hex');
    const entry = rowOf(digest).first();
    await entry.getByText('SHA-256 of the command').waitFor();
    await expectUsable();
    await entry.getByRole('link', { name: 'Its job' }).click();
    const job = page.locator('.jobs tbody tr').filter({ has: page.locator(`a[href*="${id}"]`) });
    expect(await job.textContent()).toContain('commandhost');
    await page.goBack();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
  });

  test('the audit tells who did it, and settings where they are from', async () => {
    await show('Audit');
    await page.getByLabel('Action').selectOption('user.delete');
    // The audit has the users of earlier files, too.
    expect(await rowOf('grace').first().textContent()).toContain(stack.username);
    await expectUsable();
    const release = await holdRequests(page, '**/audit?*');
    await page.getByLabel('User', { exact: true }).fill('nobody');
    // Entries of the filter before are told from those of this one.
    await page.getByText('Asking for entries').waitFor();
    const opacity = () =>
      page.evaluate<number>(
        "Number(getComputedStyle(document.querySelector('.card:has(.audit)')).opacity)",
      );
    await expect.poll(opacity).toBeLessThan(1);
    release();
    await page.getByText('No entry matches').waitFor();
    await page.unroute('**/audit?*');
    await show('Settings');
    await page.getByRole('region', { name: 'How long things are kept' }).waitFor();
    await rowOf('JOB_RETENTION_DAYS').waitFor();
    expect(await rowOf('SECRET_KEY').first().textContent()).toContain('secret');
    await page.getByLabel('Find a setting').fill('LIMIT_PROJECT');
    await expect.poll(() => rowOf('LIMIT_PROJECT_BYTES').count()).toBe(1);
    await expectUsable();
  });

  test('who is no administrator is told so', async () => {
    const user = { username: 'ada', password: PASSWORD };
    await client.post('/api/users', user);
    const other = await openConsole(browser, stack.url, { path: 'operate/users' });
    await logInToConsole(other.page, user);
    await other.page.getByText('For administrators').waitFor();
    expect(await other.page.getByRole('link', { name: 'Operate' }).count()).toBe(0);
    expect(other.faults).toEqual([]);
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });
});
