import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ConsolePage,
  chooseByName,
  expectAccessible,
  expectToFit,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { addUser } from '../harness/clients/users.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

const LONG_NAME = 'name'.repeat(50);

/** Looks at each page as a person comes by, in both themes and in three widths. */
async function expectGood(page: Page): Promise<void> {
  await expectAccessible(page);
  await expectToFit(page);
}

describeStack(missingPrograms('sshd', 'chromium'), 'a first visit to the console', form => {
  const sshd = useStarted(() => startTestSshd());
  const { stack, client } = useStack(form, { alone: 'counts the jobs in its lists' });
  const browser = useChromium();
  const directory = makeTempDir('console-key');
  const key = join(directory.path, 'id_ed25519');
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    writeFileSync(key, sshd.privateKey);
    opened = await openConsole(browser, stack.url);
    page = opened.page;
  });
  afterAll(() => directory.remove());

  const dialog = () => page.locator('dialog');
  const run = async (command: string) => {
    await page.locator('.command > textarea').fill(command);
    await page.keyboard.press('Control+Enter');
  };

  test('/ leads a browser to the login page, which says what is wrong with a login', async () => {
    await page.goto(stack.url);
    expect(page.url()).toBe(`${stack.url}/console/`);
    await page.getByLabel('User name').waitFor();
    await expectGood(page);
    await page.getByLabel('User name').fill(stack.username);
    await page.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    expect(await page.getByRole('alert').textContent()).toContain('password is wrong');
    await logInToConsole(page, stack);
    await page.waitForURL('**/console/run');
  });

  test('three steps lead to a first command: a host, a login there, the command', async () => {
    await page.locator('.steps').waitFor();
    await expectGood(page);
    await page.getByRole('button', { name: 'Add a host' }).click();
    await dialog().getByLabel('Name').fill('lab');
    await dialog().getByLabel('Address', { exact: true }).fill(sshd.host);
    await dialog().getByLabel('Port').fill(String(sshd.port));
    await page.keyboard.press('Enter');
    await dialog().getByRole('alert').waitFor();
    // What was typed is tried again as it was typed.
    expect(await dialog().getByLabel('Port').inputValue()).toBe(String(sshd.port));
    await dialog().getByLabel('private network').check();
    await page.keyboard.press('Enter');
    await dialog().locator('.fingerprints li', { hasText: 'ed25519 SHA256:' }).waitFor();
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'pin them' }).click();
    await dialog().waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'Log in to a host' }).click();
    await dialog().getByLabel('User name there').fill(sshd.username);
    await dialog().getByText('Key file').click();
    // As the browser tells that no file was chosen.
    await dialog().getByLabel('Private key').dispatchEvent('cancel', { bubbles: true });
    await dialog().getByLabel('Private key').setInputFiles(key);
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Log in' }).click();
    await dialog().waitFor({ state: 'detached' });

    await run('echo first; printf "\\033[31mred\\033[0m <b>text</b>\\n"; echo bad >&2; exit 3');
    await page.getByText('The command ended with exit status 3.').waitFor();
    const lines = page.locator('.log-row');
    await expect.poll(() => lines.count()).toBe(3);
    const texts = (await lines.locator('.log-text').allTextContents()).sort();
    expect(texts).toEqual(['bad', 'first', 'red <b>text</b>']);
    expect(await page.locator('.log-row[data-stream=stderr] .log-text').textContent()).toBe('bad');
    expect(await page.locator('.log .fg-1').textContent()).toBe('red');
    await expectGood(page);
  });

  test('the address has the state of the page, and the arrow keys bring commands back', async () => {
    expect(page.url()).toMatch(/\/console\/run\?session=\w+&job=\w+$/);
    await page.reload();
    await page.getByText('The command ended with exit status 3.').waitFor();
    await page.locator('.command > textarea').click();
    await page.keyboard.press('ArrowUp');
    expect(await page.locator('.command > textarea').inputValue()).toMatch(/^echo first;/);
    await page.keyboard.press('ArrowDown');
    expect(await page.locator('.command > textarea').inputValue()).toBe('');
    await page.locator('.command > textarea').fill('half of a com');
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.goBack();
    expect(await page.locator('.command > textarea').inputValue()).toBe('half of a com');
  });

  test('what the service refuses is said in its words, with the id of the request', async () => {
    await page.getByText('Options').click();
    await page.getByLabel('Folder').fill('/no/such/folder');
    await page.getByLabel('Name').fill(LONG_NAME);
    await run('true');
    await page.locator('.run-label', { hasText: LONG_NAME }).waitFor();
    const said = page.locator('.notice[data-look=error]');
    await said.waitFor();
    expect(await said.textContent()).toMatch(/\/no\/such\/folder[\s\S]*cwd_not_found/);
    await expectToFit(page);
    // Options stay for the next command.
    for (const option of ['Folder', 'Name']) await page.getByLabel(option).fill('');
    await page.locator('.run-label').click();
    await page.getByRole('heading', { name: LONG_NAME }).waitFor();
    await expectToFit(page);
    await page.goto(`${stack.url}/console/jobs/nothing`);
    expect(await page.getByRole('alert').textContent()).toMatch(/Request [\w-]{20,}/);
    await expectGood(page);
  });

  test('jobs are found by state and by a part of their label, and lead to their pages', async () => {
    await page.getByRole('link', { name: 'Jobs', exact: true }).first().click();
    const rows = page.locator('.jobs tbody tr');
    await rows.first().waitFor();
    await expectGood(page);
    await page.locator('.filters').getByText('Failed').click();
    // Beside it the first look at the host, whose address was refused.
    await expect.poll(() => rows.count()).toBe(2);
    expect(await rows.first().textContent()).toContain('/no/such/folder');
    await page.locator('.filters').getByText('All', { exact: true }).click();
    await page.getByLabel('A part of the label').fill('ECHO FIRST');
    await expect
      .poll(() => rows.allTextContents())
      .toEqual([expect.stringContaining('echo first')]);
    expect(new URL(page.url()).searchParams.get('search')).toBe('ECHO FIRST');
    await page.getByLabel('A part of the label').fill('no such label');
    await page.getByRole('link', { name: 'all jobs' }).click();
    await expect.poll(() => rows.count()).toBeGreaterThan(1);
    const box = page.getByLabel('A part of the label');
    await expect.poll(() => box.inputValue()).toBe('');
    expect(new URL(page.url()).search).toBe('');
    await rows.filter({ hasText: 'echo first' }).getByRole('link').click();
    await page.getByRole('region', { name: 'Timeline' }).waitFor();
    // The link is gone: the keys go on in what came in its place.
    expect(await page.evaluate('document.activeElement.localName')).toBe('main');
    await page.locator('.log-row').first().waitFor();
    await expectGood(page);
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.getByText('the job before').waitFor();
    await page.getByText('The command ended with exit status 3.').waitFor();
  });

  test("an administrator finds others' jobs, and sees no more of them than the service tells", async () => {
    const { username, client: other } = await addUser(client);
    const sid = await openSession(other, sshd, { hostname: 'lab' });
    const { id } = await launchAsync(other, sid, 'echo secret; exit 4');
    await waitForEnd(other, id);
    await page.goto(`${stack.url}/console/jobs`);
    await chooseByName(page, { label: 'Owner', name: "Everyone's jobs" });
    await page.getByLabel('Kind').selectOption('Commands');
    await chooseByName(page, { label: 'Host', name: 'lab' });
    const row = page.locator('.jobs tbody tr', { hasText: `command of ${username}` });
    await row.waitFor();
    await expectGood(page);
    await row.getByRole('link').click();
    await page.getByRole('region', { name: 'Facts' }).getByText(username).waitFor();
    expect(await page.locator('main').textContent()).not.toContain('secret');
    await expectGood(page);
  });

  test('a job that prints nothing shows what it came to', async () => {
    await page.goto(`${stack.url}/console/jobs?search=${sshd.host}`);
    const looks = page.locator('.jobs tbody tr', { hasText: 'scan-host' });
    await looks.filter({ hasText: 'Succeeded' }).getByRole('link').click();
    const result = page.getByRole('region', { name: 'Result' });
    await result.getByText('ssh-ed25519').waitFor();
    await expectGood(page);
  });

  test('a running command is cancelled', async () => {
    await page.goto(`${stack.url}/console/run`);
    await run('echo started; sleep 600');
    await page.locator('.log-row', { hasText: 'started' }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.run-head .badge', { hasText: 'Cancelled' }).waitFor();
  });

  test('a login on a host is ended, once that is meant', async () => {
    await page.getByRole('button', { name: 'Log out there' }).click();
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Stay' }).click();
    await dialog().waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Log out there' }).click();
    await dialog().getByRole('button', { name: 'Log out there' }).click();
    await page.locator('.steps').waitFor();
    expect((await client.get<{ items: unknown[] }>('/api/remotes')).items).toEqual([]);
    // For what comes after it.
    await openSession(client, sshd, { hostname: 'lab' });
  });

  test('a login that ends leads no command to another host', async () => {
    const gone = await openSession(client, sshd, { hostname: 'lab' });
    await page.goto(`${stack.url}/console/run?session=${gone}`);
    await page.locator('.command > textarea').fill('rm -r results');
    await client.delete(`/api/remotes/${gone}`);
    await page.getByText('The login that was used here has ended.').waitFor();
    expect(await page.locator('.command').count()).toBe(0);
    await expectGood(page);
    // The account that was used last is there to be used again.
    await page.getByRole('button', { name: 'Log in again' }).click();
    await expect
      .poll(() => dialog().getByLabel('User name there').inputValue())
      .toBe(sshd.username);
    // It has its values before it is shown, and Escape closes what is shown.
    await dialog().waitFor();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await page.getByLabel('Host').selectOption({ index: 1 });
    expect(await page.locator('.command > textarea').inputValue()).toBe('rm -r results');
    await page.locator('.command > textarea').fill('');
  });

  test('a way back to the page leads no command to another login', async () => {
    const chosen = await openSession(client, sshd, { hostname: 'lab' });
    const area = page.locator('.command > textarea');
    await page.goto(`${stack.url}/console/run?session=${chosen}`);
    await area.fill('rm -r results');
    for (const link of ['Run', 'Windlass', 'Jobs', 'Run']) {
      await page.getByRole('link', { name: link, exact: true }).click();
      if (link === 'Jobs') await page.locator('.jobs').waitFor();
      else await expect.poll(() => new URL(page.url()).search).toBe(`?session=${chosen}`);
    }
    expect(await page.getByLabel('Host').inputValue()).toBe(chosen);
    expect(await area.inputValue()).toBe('rm -r results');
    // In a new tab none was chosen yet.
    const context = page.context();
    const other = await context.newPage();
    await other.goto(`${stack.url}/console/run`);
    await other.getByText('Choose a login', { exact: true }).waitFor();
    expect(await other.locator('.command').count()).toBe(0);
    await other.close();
    await client.delete(`/api/remotes/${chosen}`);
    await page.getByText('The login that was used here has ended.').waitFor();
    await page.getByRole('link', { name: 'Run', exact: true }).click();
    await page.getByText('The login that was used here has ended.').waitFor();
    await page.getByLabel('Host').selectOption({ index: 1 });
    await area.fill('');
  });

  test('the keyboard alone is enough', async () => {
    const tabTo = async (element: Locator) => {
      for (let tabs = 0; tabs < 40; tabs++) {
        await page.keyboard.press('Tab');
        if (await element.evaluate(it => it === it.ownerDocument.activeElement)) return;
      }
      throw new Error(`Tab does not lead to ${element}.`);
    };
    await page.goto(`${stack.url}/console/jobs`);
    await page.locator('.jobs tbody tr').first().waitFor();
    await tabTo(page.getByRole('button', { name: 'To the content' }));
    await page.keyboard.press('Enter');
    await tabTo(page.getByRole('link', { name: 'Run a command' }));
    await page.keyboard.press('Enter');
    await page.locator('.command > textarea').waitFor();
    await tabTo(page.locator('.command > textarea'));
    await page.keyboard.type('seq 300');
    await page.keyboard.press('Control+Enter');
    await page.getByText('300 lines').waitFor();
    const lines = page.getByRole('region', { name: 'Lines of output' });
    await lines.waitFor();
    await tabTo(lines);
    await page.keyboard.press('Home');
    await expect.poll(() => page.locator('.log-number').first().textContent()).toBe('1');
  });

  test('the output is copied as text and downloaded as bytes', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const text = `${Array.from({ length: 300 }, (_, n) => n + 1).join('\n')}\n`;
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text);
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download stdout' }).click();
    const path = await (await downloading).path();
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('after the logout nothing is shown, and no command is kept in the browser', async () => {
    await page.evaluate(
      `localStorage.setItem('windlass.uploads', '{"u":{"at":${Date.now()},"files":[]}}')`,
    );
    await page.getByRole('button', { name: 'Log out', exact: true }).click();
    await page.getByLabel('User name').waitFor();
    expect(await page.evaluate('localStorage.length')).toBe(0);
    await page.goto(`${stack.url}/console/jobs?state=Failed`);
    await logInToConsole(page, stack);
    expect(page.url()).toBe(`${stack.url}/console/jobs?state=Failed`);
    await page.locator('.jobs tbody tr', { hasText: '/no/such/folder' }).waitFor();
  });

  test('who logs in where the login of another has ended finds nothing of theirs', async () => {
    await page.goto(`${stack.url}/console/run`);
    await run('echo of the administrator');
    await page.getByText('1 line', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.locator('.jobs tbody tr', { hasText: 'of the administrator' }).waitFor();
    await page.context().clearCookies();
    await page.getByLabel('User name').waitFor();
    await logInToConsole(page, stack);
    await page.locator('.jobs tbody tr', { hasText: 'of the administrator' }).waitFor();
    await page.context().clearCookies();
    await page.getByLabel('User name').waitFor();
    const other = await addUser(client);
    await openSession(other.client, sshd, { hostname: 'lab' });
    await logInToConsole(page, other.login);
    await page.getByText('Logins').waitFor({ state: 'attached' });
    expect(await page.locator('main').textContent()).not.toContain('of the administrator');
    await page.getByRole('link', { name: 'Run', exact: true }).click();
    await page.locator('.command > textarea').click();
    await page.keyboard.press('ArrowUp');
    expect(await page.locator('.command > textarea').inputValue()).toBe('');
  });

  test('no script threw, nothing broke the policy, and nothing came from elsewhere', () => {
    expect(opened.faults).toEqual([]);
  });
});
