import { expect, test } from 'vitest';
import {
  chooseByName,
  expectAccessible,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { startCodeHost } from '../harness/hosts/pam-sshd.ts';
import { addHost } from '../harness/hosts/remote.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

const skip = missingRoot() ?? missingPrograms('sshd', 'google-authenticator', 'chromium');

describeStack(skip, 'one-time codes in the console', form => {
  const host = useStarted(() => startCodeHost());
  const both = useStarted(() =>
    startCodeHost({ lines: ['AuthenticationMethods publickey,keyboard-interactive'] }),
  );
  const link = useStarted(() => startTcpProxy({ host: host.sshd.host, port: host.sshd.port }));
  const { stack, client } = useStack(form);
  const browser = useChromium();

  test('are asked for as the host asks, and again when its connection was lost', async () => {
    await addHost(client, host.sshd, { name: 'codes', port: link.port });
    const { page, faults } = await openConsole(browser, stack.url);
    await logInToConsole(page, stack);
    const dialog = page.locator('dialog');
    const answer = async (code: string) => {
      await dialog.getByLabel('Verification code').waitFor();
      await expectAccessible(page);
      await dialog.getByLabel('Verification code').fill(code);
      await page.keyboard.press('Enter');
    };

    await page.getByRole('button', { name: 'Log in to a host' }).click();
    await dialog.getByLabel('User name there').fill(host.account.username);
    await dialog.getByText('One-time codes').click();
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await answer('99999999');
    expect(await dialog.getByRole('alert').textContent()).toContain('Remote authentication failed');
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await answer(host.nextCode());
    await dialog.waitFor({ state: 'detached' });
    await page.locator('.command > textarea').fill('echo $USER');
    await page.keyboard.press('Control+Enter');
    await page.locator('.log-row', { hasText: host.account.username }).waitFor();

    link.cut();
    await page.getByRole('button', { name: 'Log in again' }).click({ timeout: 60_000 });
    await dialog.getByText('One-time codes').click();
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await answer(host.nextCode());
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Log in again' }).waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
  });

  test('follow a key in one login, where the host wants both', async () => {
    await addHost(client, both.sshd, { name: 'both' });
    const { page, faults } = await openConsole(browser, stack.url, { path: 'run' });
    await logInToConsole(page, stack);
    await page.getByRole('button', { name: 'Log in to a host' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Log in to a host' });
    const asked = page.getByRole('dialog', { name: 'The host asks' });
    await chooseByName(dialog, { label: 'Host', name: 'both' });
    await dialog.getByLabel('User name there').fill(both.account.username);
    await dialog.getByText('Key file').click();
    const buffer = Buffer.from(both.sshd.privateKey);
    const file = { name: 'id_ed25519', mimeType: 'text/plain', buffer };
    await dialog.getByLabel('Private key').setInputFiles(file);
    const logIn = () => dialog.getByRole('button', { name: 'Log in' }).click();
    const answer = async (code: string) => {
      const field = asked.getByLabel('Verification code');
      await field.waitFor();
      // It can be typed at once.
      expect(await field.evaluate(it => it === it.ownerDocument.activeElement)).toBe(true);
      await expectAccessible(page);
      await page.keyboard.type(code);
      await page.keyboard.press('Enter');
    };

    await logIn();
    await answer('99999999');
    await dialog.getByRole('alert').getByText('Remote authentication failed').waitFor();
    // The key that was chosen is still there.
    await logIn();
    await answer(both.nextCode());
    // The question goes when it is answered, the dialog when the host has let its user in.
    await asked.waitFor({ state: 'detached' });
    await dialog.waitFor({ state: 'detached', timeout: 60_000 });
    await page.getByLabel('Command on both').fill('echo $USER');
    await page.keyboard.press('Control+Enter');
    await page.locator('.log-row', { hasText: both.account.username }).waitFor();
    expect(faults).toEqual([]);
  });
});
