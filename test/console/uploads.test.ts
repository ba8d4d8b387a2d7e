import { randomBytes } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import {
  expectAccessible,
  expectToFit,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { parse } from '../harness/clients/tables.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
} from '../harness/clients/uploads.ts';
import { makeZip } from '../harness/files/make-zip.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const MB = 1 << 20;

describeStack(missingPrograms('chromium'), 'uploads in the console', form => {
  const { stack, client } = useStack(form);
  const browser = useChromium();
  let page: Page;
  let mid: string;

  beforeAll(async () => {
    const made = await makeModel(client);
    mid = made.mid;
    const path = `projects/${made.pid}/models/${mid}/upload`;
    ({ page } = await openConsole(browser, stack.url, { path }));
    await logInToConsole(page, stack);
  });
  afterEach(() => page.unrouteAll({ behavior: 'ignoreErrors' }));

  const own = () => page.getByRole('region', { name: 'Uploads of this page' });
  const before = () => page.getByRole('region', { name: 'Begun before' });
  const dialog = () => page.locator('dialog');
  const send = async (name: string, bytes: number) => {
    const file = { name, mimeType: '', buffer: randomBytes(bytes) };
    await page.getByLabel('Choose files').setInputFiles(file);
    // Not until the page rests: it is held up by what is held back.
    await page.getByRole('button', { name: 'Upload the file' }).click({ noWaitAfter: true });
  };
  /** Whether the browser would ask before it closes the page. */
  const asksToStay = () =>
    page.evaluate<boolean>("!dispatchEvent(new Event('beforeunload', { cancelable: true }))");
  const idOf = async (state: string) => {
    const { items } = await client.get<{ items: { id: string; state: string }[] }>('/api/uploads');
    return items.find(upload => upload.state === state)?.id ?? '';
  };

  test('a file that is dropped beside the zone does not open in place of the console', async () => {
    await page.getByLabel('Choose files').waitFor({ state: 'attached' });
    for (const type of ['dragover', 'drop'])
      expect(
        await page.evaluate<boolean>(
          `document.querySelector('h1').dispatchEvent(
            new DragEvent('${type}', { bubbles: true, cancelable: true }))`,
        ),
      ).toBe(false);
  });

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
    await own().getByText('Sending …').waitFor();
    release();
    await own().getByText('Stored', { exact: true }).waitFor();
    expect(await asksToStay()).toBe(false);
    await own().getByRole('button', { name: 'Clear whole.bin' }).click();
  });

  test('what has been sent is given up once that is meant', async () => {
    await page.route('**/parts/1', () => {});
    await send('half.bin', 9 * MB);
    await own().getByText('8.0 MiB of 9.0 MiB').waitFor();
    const id = await idOf('open');
    await own().getByRole('button', { name: 'Give up half.bin' }).click();
    await dialog().getByText('8.0 MiB have arrived').waitFor();
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Keep' }).click();
    expect(await readUpload(client, id)).toMatchObject({ state: 'open' });
    await own().getByRole('button', { name: 'Give up half.bin' }).click();
    await dialog().getByRole('button', { name: 'Give it up' }).click();
    await own().waitFor({ state: 'detached' });
    await expect.poll(async () => (await client.fetch(`/api/uploads/${id}`)).status).toBe(404);
  });

  test('what another program sends is given up once that is meant', async () => {
    const id = await beginUpload(client, mid, ['theirs.bin']);
    await putPart(client, partPath(id, 0, 0), randomBytes(MB));
    await page.reload();
    await before().getByText('1.0 MiB arrived').waitFor();
    await putPart(client, partPath(id, 0, 1), randomBytes(MB));
    await before().getByRole('button', { name: 'Give up theirs.bin' }).click();
    await dialog().getByText('2.0 MiB have arrived').waitFor();
    await dialog().getByText('Another page or program that is sending it now ends.').waitFor();
    await expectAccessible(page);
    await expectToFit(page);
    await dialog().getByRole('button', { name: 'Keep' }).click();
    expect(await readUpload(client, id)).toMatchObject({ state: 'open' });
    await before().getByRole('button', { name: 'Give up theirs.bin' }).click();
    await dialog().getByRole('button', { name: 'Give it up' }).click();
    await before().waitFor({ state: 'detached' });
    expect((await client.fetch(`/api/uploads/${id}`)).status).toBe(404);
  });

  const staged = () => page.getByRole('region', { name: 'To be uploaded' });
  const choose = (name: string, text: string) =>
    page
      .getByLabel('Choose files')
      .setInputFiles({ name, mimeType: '', buffer: Buffer.from(text) });

  test('a file tells all that goes with what is there under its name', async () => {
    const csv = Buffer.from('a,b\n1,2\n');
    const pack = makeZip(['one.csv', 'two.csv'].map(name => ({ name, content: csv })));
    const made = await parse(client, { mid, parser: 'zip', files: { 'pack.zip': [pack] } });
    expect(made.state).toBe('succeeded');
    await page.reload();
    await choose('pack.zip', 'another one');
    await staged().getByText('Replaces 2 tables').waitFor();
    await expectAccessible(page);
    await staged().getByRole('button', { name: 'Cancel' }).click();
  });

  test('a file tells what goes with it beyond the first artifacts of a model, too', async () => {
    // As if each page had one artifact.
    const first = new RegExp(`/api/models/${mid}\\?limit=1000`);
    await page.route(first, route =>
      route.continue({ url: route.request().url().replace('limit=1000', 'limit=1') }),
    );
    await page.reload();
    await choose('pack.zip', 'another one');
    await staged().getByText('Replaces 2 tables').waitFor();
    await staged().getByRole('button', { name: 'Cancel' }).click();
  });

  test('an upload that was begun under another name goes on with the file that is chosen', async () => {
    const bytes = randomBytes(1_024);
    const id = await beginUpload(client, mid, ['day']);
    await putPart(client, partPath(id, 0, 0), bytes);
    await page.reload();
    await before().getByText('1.0 KiB arrived').waitFor();
    const go = (...names: string[]) =>
      before()
        .getByLabel('Choose and go on')
        .setInputFiles(names.map(name => ({ name, mimeType: '', buffer: bytes })));
    // Which of two is meant nobody knows.
    await go('day.bin', 'night.bin');
    await before().getByText('Choose the file that was begun as day, and no other.').waitFor();
    // A file with other bytes is told from it, and costs nothing that has arrived.
    const other = { name: 'day.csv', mimeType: '', buffer: randomBytes(1_024) };
    await before().getByLabel('Choose and go on').setInputFiles(other);
    await own().getByText('was begun with other files').waitFor();
    await own().getByRole('button', { name: 'Clear day' }).click();
    await go('day.bin');
    await own().getByText('Stored', { exact: true }).waitFor();
    const stored = await client.getBytes(`/api/models/${mid}/files/day`);
    expect(stored.bytes.equals(bytes)).toBe(true);
    await own().getByRole('button', { name: 'Clear day' }).click();
    // Of several each goes by its name.
    const several = await beginUpload(client, mid, ['one', 'two']);
    await page.reload();
    await go('one', 'other');
    await before().getByText('No chosen file is called two.').waitFor();
    await client.delete(`/api/uploads/${several}`);
    await page.reload();
  });
});
