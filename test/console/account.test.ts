import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import {
  type ConsolePage,
  expectAccessible,
  expectToFit,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startReceiver, type WebhookReceiver } from '../harness/servers/webhook-receiver.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

const PASSWORD = 'a long enough password';
const NEW_PASSWORD = 'an even longer password';
const LONG_NAME = 'n'.repeat(100);

describeStack(missingPrograms('sshd', 'chromium'), 'what a user has of the own', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: { WEBHOOK_PRIVATE: 'true' } });
  const browser = useChromium();
  let opened: ConsolePage;
  let page: Page;
  let ada: Client;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    await client.post('/api/users', { username: 'ada', password: PASSWORD });
    ada = new Client(stack.url, 'ada', PASSWORD);
    opened = await openConsole(browser, stack.url);
    page = opened.page;
    await logInToConsole(page, { username: 'ada', password: PASSWORD });
  });

  afterAll(() => receiver.stop());

  const dialog = () => page.locator('dialog');
  const show = (part: string) =>
    page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: part }).click();
  const rowOf = (name: string) => page.getByRole('row').filter({ hasText: name });
  const expectUsable = async () => {
    await expectAccessible(page);
    await expectToFit(page);
  };
  const asToken = (token: string, method = 'GET', path = '/api/users/-') =>
    fetch(`${stack.url}${path}`, { method, headers: { Authorization: `Bearer ${token}` } });

  test('a token is made, shown once, and good for what it says until it is ended', async () => {
    await page.getByRole('link', { name: 'Your account: ada' }).click();
    await page.waitForURL(/\/account\/tokens$/);
    await page.getByText('No token yet').waitFor();
    await expectUsable();
    await page.getByRole('button', { name: 'New token' }).click();
    await dialog().getByLabel('Name').fill(LONG_NAME);
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Make the token' }).click();
    const token = await dialog().getByLabel('Token', { exact: true }).inputValue();
    await expect.poll(() => page.evaluate('getSelection().toString()')).toBe(token);
    await expectAccessible(page);
    expect((await asToken(token)).status).toBe(200);
    expect((await asToken(token, 'DELETE', '/api/jobs/none')).status).toBe(403);
    await dialog().getByRole('button', { name: 'I have it' }).click();
    const row = rowOf(LONG_NAME);
    await row.waitFor();
    expect(await page.content()).not.toContain(token);
    const [listed] = (await ada.get<{ items: { expires: string }[] }>('/api/users/-/tokens')).items;
    const days = (Date.parse(listed?.expires ?? '') - Date.now()) / 86_400_000;
    expect(days).toBeCloseTo(90, 1);
    await page.reload();
    expect(await row.textContent()).toContain('within the last hour');
    await expectUsable();
    await row.getByRole('button', { name: 'End' }).click();
    await dialog().getByRole('button', { name: 'End the token' }).click();
    await page.getByText('No token yet').waitFor();
    expect((await asToken(token)).status).toBe(401);
  });

  test('a webhook is made, its secret verifies what it is sent, and it tells what that was', async () => {
    await show('Webhooks');
    await page.getByText('No webhook yet').waitFor();
    await expectUsable();
    await page.getByRole('button', { name: 'New webhook' }).click();
    await dialog().getByLabel('Address of your server').fill(receiver.url);
    await dialog().getByLabel('Cancelled').uncheck();
    await dialog().getByLabel('Commands').check();
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Make the webhook' }).click();
    receiver.secret = await dialog().getByLabel('Secret').inputValue();
    expect(receiver.secret).toMatch(/^whsec_/);
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'I have it' }).click();
    await rowOf(receiver.url).getByText('Works').waitFor();
    expect(await rowOf(receiver.url).textContent()).toContain('command that succeeded or failed');
    await page.getByRole('button', { name: 'Deliveries to' }).click();
    await page.getByText('Nothing yet').waitFor();
    expect(new URL(page.url()).search).toMatch(/^\?webhook=\w{26}$/);
    const sid = await openSession(ada, sshd);
    const { id } = await launchAsync(ada, sid, 'true');
    await waitForEnd(ada, id);
    await rowOf(id).getByText('Delivered').waitFor();
    expect(receiver.received.map(({ type, data }) => [type, data.id])).toEqual([
      ['job.succeeded', id],
    ]);
    await expectUsable();
    await page.getByRole('button', { name: 'Remove' }).click();
    await dialog().getByRole('button', { name: 'Remove the webhook' }).click();
    await page.getByText('No webhook yet').waitFor();
  });

  test('a login on a host is seen and ended', async () => {
    await show('Logins on hosts');
    const row = rowOf(sshd.username);
    await row.getByText('Open', { exact: true }).waitFor();
    await expectUsable();
    await row.getByRole('button', { name: 'Log out' }).click();
    await dialog().getByRole('button', { name: 'Log out there' }).click();
    await page.getByText('No login on a host').waitFor();
    expect((await ada.get<{ items: unknown[] }>('/api/remotes')).items).toEqual([]);
    await expectUsable();
  });

  test('a password is changed by who knows the one until now, and the page goes on', async () => {
    const other = await openConsole(browser, stack.url, { path: 'jobs' });
    await logInToConsole(other.page, { username: 'ada', password: PASSWORD });
    await show('Password');
    await expectUsable();
    const form = page.getByRole('form', { name: 'Password' });
    const change = async (current: string, again: string) => {
      await form.getByLabel('Password until now').fill(current);
      await form.getByLabel(/^New password(?! again)/).fill(NEW_PASSWORD);
      await form.getByLabel('New password again').fill(again);
      await form.getByRole('button', { name: 'Change the password' }).click();
    };
    await change(PASSWORD, 'another long password');
    await form.getByText('The new passwords differ').waitFor();
    await change('not the password at all', NEW_PASSWORD);
    await form.getByText('The password until now is another one.').waitFor();
    await expectUsable();
    await change(PASSWORD, NEW_PASSWORD);
    await form.getByText('It is changed.').waitFor();
    expect(await form.getByLabel('Password until now').inputValue()).toBe('');
    await show('Tokens');
    await page.getByText('No token yet').waitFor();
    await other.page.reload();
    await other.page.getByRole('button', { name: 'Log in' }).waitFor();
    await logInToConsole(other.page, { username: 'ada', password: NEW_PASSWORD });
    expect([...opened.faults, ...other.faults]).toEqual([]);
  });
});
