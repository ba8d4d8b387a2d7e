import { randomBytes } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { logInToConsole, openConsole, useChromium } from '../harness/console-page.ts';
import { describeStack } from '../harness/forms.ts';
import { missingPrograms } from '../harness/skip.ts';
import { makeModel } from '../harness/uploads.ts';
import { useStack } from '../harness/use-stack.ts';

const MB = 1 << 20;

describeStack(missingPrograms('chromium'), 'uploads in the console', form => {
  const { stack, client } = useStack(form);
  const browser = useChromium();
  let page: Page;

  beforeAll(async () => {
    const { pid, mid } = await makeModel(client);
    const path = `projects/${pid}/models/${mid}/upload`;
    ({ page } = await openConsole(browser, stack.url, { path }));
    await logInToConsole(page, stack);
  });
  afterEach(() => page.unrouteAll({ behavior: 'ignoreErrors' }));

  const own = () => page.getByRole('region', { name: 'Uploads of this page' });
  const send = async (name: string, bytes: number) => {
    const file = { name, mimeType: '', buffer: randomBytes(bytes) };
    await page.getByLabel('Choose files').setInputFiles(file);
    // Not until the page rests: it is held up by what is held back.
    await page.getByRole('button', { name: 'Upload the file' }).click({ noWaitAfter: true });
  };
  /** Whether the browser would ask before it closes the page. */
  const asksToStay = () =>
    page.evaluate<boolean>("!dispatchEvent(new Event('beforeunload', { cancelable: true }))");

  test('a page is needed until the service has taken the end of what it sends', async () => {
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    let isAsked = () => {};
    const asked = new Promise<void>(resolve => {
      isAsked = resolve;
    });
    await page.route('**/finished', async route => {
      isAsked();
      await held;
      await route.continue();
    });
    await send('whole.bin', MB);
    await asked;
    expect(await asksToStay()).toBe(true);
    await own().getByText('Is sent').waitFor();
    release();
    await own().getByText('Is there').waitFor();
    expect(await asksToStay()).toBe(false);
    await own().getByRole('button', { name: 'Clear whole.bin' }).click();
  });
});
