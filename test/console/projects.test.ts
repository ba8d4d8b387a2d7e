import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const PASSWORD = 'a long enough password';
const LONG_NAME = 'measured'.repeat(20);

describeStack(missingPrograms('chromium'), 'projects in the console', form => {
  const { stack, client } = useStack(form);
  const browser = useChromium();
  const temporary = makeTempDir('console-upload');
  const folder = { path: join(temporary.path, 'roof') };
  let opened: ConsolePage;
  let page: Page;
  let grace: Client;

  beforeAll(async () => {
    mkdirSync(join(folder.path, 'deep'), { recursive: true });
    writeFileSync(join(folder.path, 'sun.csv'), 'a;b\n1;2\n');
    writeFileSync(join(folder.path, 'deep/rain.csv'), 'a;b\n1;2\n');
    await client.post('/api/users', { username: 'grace', password: PASSWORD });
    await client.post('/api/users', { username: 'ada', password: PASSWORD });
    grace = new Client(stack.url, 'grace', PASSWORD);
    opened = await openConsole(browser, stack.url, { path: 'projects' });
    page = opened.page;
    await logInToConsole(page, { username: 'grace', password: PASSWORD });
  });

  afterAll(() => temporary.remove());

  const dialog = () => page.locator('dialog');
  const show = (part: string) =>
    page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: part }).click();
  const rowOf = (name: string) => page.getByRole('row').filter({ hasText: name });
  const expectUsable = async () => {
    await expectAccessible(page);
    await expectToFit(page);
  };

  test('a first visit leads to a project and a model in it', async () => {
    await page.getByText('No project yet').waitFor();
    await expectUsable();
    await page.getByRole('button', { name: 'New project' }).click();
    await dialog().getByLabel('Name').fill(LONG_NAME);
    await dialog().getByLabel('Description').fill('Measured on the roof.');
    await expectAccessible(page);
    await page.keyboard.press('Tab');
    await dialog().getByLabel('Name').press('Enter');
    await page.getByRole('heading', { name: LONG_NAME }).waitFor();
    await page.getByText('No model yet').waitFor();
    await expectUsable();
    await page.getByRole('button', { name: 'New model' }).click();
    await dialog().getByLabel('Name').fill('day');
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Make the model' }).click();
    await page.waitForURL(/\/projects\/\w+\/models\/\w+\/content$/);
    await page.goBack();
    await rowOf('day').waitFor();
    await expectUsable();
    await page.goto(`${stack.url}/console/projects`);
    await rowOf('Measured on the roof.').waitFor();
    await expectUsable();
    await rowOf(LONG_NAME).getByRole('link').click();
    await rowOf('day').waitFor();
  });

  test('people are added with a role, and see then what is theirs to see', async () => {
    await show('People');
    await page.getByLabel('User name').fill('nobody-here');
    await page.getByRole('button', { name: 'Add' }).click();
    // In words for people, and not again where something else is asked.
    expect(await page.getByRole('alert').textContent()).toMatch(/^There is no user nobody-here/);
    await page.getByLabel('User name').fill('grace');
    await page.getByRole('button', { name: 'Add' }).click();
    await dialog().getByText('you cannot give it to yourself again').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await dialog().getByRole('button', { name: 'Keep' }).click();
    await page.getByLabel('User name').fill('ada');
    await page.getByRole('button', { name: 'Add' }).click();
    const role = page.getByLabel('Role of ada');
    expect(await role.inputValue()).toBe('reader');
    await expectUsable();
    const ada = new Client(stack.url, 'ada', PASSWORD);
    const listed = async () =>
      (await ada.get<{ items: { name: string; role: string }[] }>('/api/projects')).items;
    expect(await listed()).toMatchObject([{ name: LONG_NAME, role: 'reader' }]);
    const other = await openConsole(browser, stack.url, {
      path: new URL(page.url()).pathname.slice(9),
    });
    await logInToConsole(other.page, { username: 'ada', password: PASSWORD });
    await other.page.getByRole('heading', { name: 'People' }).waitFor();
    expect(await other.page.getByRole('combobox').count()).toBe(0);
    await other.page.getByRole('link', { name: 'Models' }).click();
    await other.page.getByRole('row').filter({ hasText: 'day' }).waitFor();
    expect(await other.page.getByRole('button', { name: 'New model' }).count()).toBe(0);
    expect(other.faults).toEqual([]);
    await other.page.context().close();
    await role.selectOption('writer');
    await expect.poll(async () => (await listed())[0]?.role).toBe('writer');
    await role.selectOption('administrator');
    await expect.poll(async () => (await listed())[0]?.role).toBe('administrator');
    await page.getByLabel('Role of grace').focus();
    await page.keyboard.press('ArrowUp');
    await dialog().getByText('you cannot give it to yourself again').waitFor();
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Keep' }).click();
    await dialog().waitFor({ state: 'detached' });
    expect(await page.getByLabel('Role of grace').inputValue()).toBe('administrator');
    await page.getByLabel('User name').fill('grace');
    await page.getByRole('button', { name: 'Add' }).click();
    await dialog().getByText('you cannot give it to yourself again').waitFor();
    await dialog().getByRole('button', { name: 'Keep' }).click();
    await dialog().waitFor({ state: 'detached' });
    const ofGrace = await grace.get<{ items: { role: string }[] }>('/api/projects');
    expect(ofGrace.items).toMatchObject([{ role: 'administrator' }]);
    await page.getByRole('button', { name: 'Remove ada' }).click();
    await rowOf('ada').waitFor({ state: 'detached' });
    expect(await listed()).toEqual([]);
  });

  test('a parameter keeps its numbers as they are written, whatever else of it is changed', async () => {
    await show('Models');
    await rowOf('day').getByRole('link').click();
    await page.getByText('Nothing is in it yet').waitFor();
    await expectUsable();
    await page.getByRole('link', { name: 'New parameter' }).click();
    await expect
      .poll(() => page.getByLabel('Name').evaluate(field => field.matches(':focus')))
      .toBe(true);
    await page.keyboard.type('run/seed');
    const value = page.getByLabel('Value');
    await value.fill('{\n  "seed": 12345678901234567890,}');
    await page.getByText('Line 2, column 32: a name in double quotes belongs here.').waitFor();
    expect(await page.getByRole('button', { name: 'Store' }).isDisabled()).toBe(true);
    await expectUsable();
    await page.getByRole('button', { name: 'Go there' }).click();
    await page.keyboard.type(' "small": -0, "far": 1e400');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.waitForURL(/parameter\?name=run%2Fseed$/);
    const stored = async () => (await grace.fetch(path)).text();
    const path = `/api/models/${/models\/(\w+)/.exec(page.url())?.[1]}/parameters/run%2Fseed`;
    expect(await stored()).toBe('{\n  "seed": 12345678901234567890, "small": -0, "far": 1e400}');
    await page.reload();
    await page.getByRole('button', { name: 'Format' }).click();
    await page.getByText('Not stored yet.').waitFor();
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    await page.route(`**${path}`, route => held.then(() => route.continue()));
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByText('Storing …').waitFor();
    expect(await value.isEditable()).toBe(false);
    release();
    await page.getByText('Storing …').waitFor({ state: 'detached' });
    await page.unroute(`**${path}`);
    expect(await stored()).toBe(
      '{\n  "seed": 12345678901234567890,\n  "small": -0,\n  "far": 1e400\n}',
    );
    // Somebody else is not overwritten.
    await grace.fetch(path, { method: 'PUT', body: '{"value":2}' });
    await value.fill('3.10');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByText('Somebody else stored this parameter since.').waitFor();
    expect(await page.getByLabel('Stored now').inputValue()).toBe('2');
    expect(await value.inputValue()).toBe('3.10');
    expect(await stored()).toBe('2');
    await expectUsable();
    // One more time, and it is still not replaced unseen.
    await grace.fetch(path, { method: 'PUT', body: '{"value":2.5}' });
    await page.getByRole('button', { name: 'Store mine' }).click();
    await expect.poll(() => page.getByLabel('Stored now').inputValue()).toBe('2.5');
    await page.getByRole('button', { name: 'Store mine' }).click();
    await expect.poll(stored).toBe('3.10');
    await page.getByText('Somebody else stored').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'day' }).click();
    await rowOf('run/seed').waitFor();
    await expectUsable();
    await page.getByRole('button', { name: 'Remove run/seed' }).click();
    await dialog().getByRole('button', { name: 'Remove the parameter' }).click();
    await page.getByText('Nothing is in it yet').waitFor();
    await page.getByRole('link', { name: LONG_NAME }).click();
  });

  test('what is typed and not stored is there again after a look at other pages', async () => {
    const look = async () => {
      await page.getByRole('navigation', { name: 'Pages' }).getByText('Jobs').click();
      await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
      await page.goBack();
    };
    await show('Models');
    await rowOf('day').getByRole('link').click();
    await page.getByRole('link', { name: 'New parameter' }).click();
    await page.getByLabel('Name').fill('draft');
    await page.getByLabel('Value').fill('{"typed": 1}');
    await page.getByLabel('An input of the model').uncheck();
    await look();
    await expect.poll(() => page.getByLabel('Value').inputValue()).toBe('{"typed": 1}');
    expect(await page.getByLabel('Name').inputValue()).toBe('draft');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByRole('heading', { name: 'draft' }).waitFor();
    expect(await page.getByLabel('An input of the model').isChecked()).toBe(false);
    await page.getByLabel('Value').fill('{"typed": 2}');
    await look();
    await page.getByText('Not stored yet.').waitFor();
    // Another one has stored meanwhile: it is not replaced unseen.
    const mid = new URL(page.url()).pathname.split('/').at(-2);
    const path = `/api/models/${mid}/parameters/draft`;
    await grace.fetch(path, { method: 'PUT', body: '{"value":3,"input":false}' });
    await look();
    await page.getByText('Somebody else stored this parameter since.').waitFor();
    expect(await page.getByLabel('Value').inputValue()).toBe('{"typed": 2}');
    await page.getByRole('button', { name: 'Take theirs' }).click();
    await expect.poll(() => page.getByLabel('Value').inputValue()).toBe('3');
    await page.getByLabel('Value').fill('4');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByText('Not stored yet.').waitFor({ state: 'detached' });
    await look();
    await expect.poll(() => page.getByLabel('Value').inputValue()).toBe('4');
    expect(await grace.get(path)).toBe(4);
    // It is removed meanwhile, and is neither stored anew nor lost unseen.
    const isRemoved = () => page.getByText('Somebody else removed this parameter since.').waitFor();
    await page.getByLabel('Value').fill('5');
    await grace.delete(path);
    await page.getByRole('button', { name: 'Store' }).click();
    await isRemoved();
    expect(await page.getByLabel('Value').inputValue()).toBe('5');
    expect(await page.getByLabel('Stored now').count()).toBe(0);
    await expectUsable();
    await look();
    await isRemoved();
    // Somebody else stores another one before mine comes.
    await grace.fetch(path, { method: 'PUT', body: '{"value":6}' });
    await page.getByRole('button', { name: 'Store mine' }).click();
    await page.getByText('Somebody else stored this parameter since.').waitFor();
    expect(await page.getByLabel('Stored now').inputValue()).toBe('6');
    await grace.delete(path);
    await page.getByRole('button', { name: 'Store mine' }).click();
    await isRemoved();
    await page.getByRole('button', { name: 'Store mine' }).click();
    // The page does not say so while its request is under way.
    await expect.poll(async () => (await grace.fetch(path)).status).toBe(200);
    expect(await grace.get(path)).toBe(5);
    await expect.poll(() => page.getByText('Somebody else').count()).toBe(0);
    await page.getByLabel('Value').fill('7');
    await grace.delete(path);
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByRole('button', { name: 'Take theirs' }).click();
    await page.getByText('Nothing is in it yet').waitFor();
    await page.getByRole('link', { name: LONG_NAME }).click();
    // What somebody else stores meanwhile under the name of a new one is kept.
    const taken = path.replace('draft', 'taken');
    await page.route(`**${taken}`, async route => {
      const body = '{"value":4}';
      if (route.request().method() === 'PUT') await grace.fetch(taken, { method: 'PUT', body });
      await route.continue();
    });
    await show('Models');
    await rowOf('day').getByRole('link').click();
    await page.getByRole('link', { name: 'New parameter' }).click();
    await page.getByLabel('Name').fill('taken');
    await page.getByLabel('Value').fill('5');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByText('There is a parameter taken already.').waitFor();
    expect(await grace.get(taken)).toBe(4);
    await page.unrouteAll({ behavior: 'wait' });
    for (const field of ['Name', 'Value']) await page.getByLabel(field).fill('');
    await page.getByRole('link', { name: LONG_NAME }).click();
  });

  test('a bookmark is stored as it was typed, looked at and removed', async () => {
    await show('Bookmarks');
    await page.getByText('No bookmark yet').waitFor();
    await page.getByRole('button', { name: 'New bookmark' }).click();
    await page.getByLabel('State').fill('{"zoom": 1.50, "at": 12345678901234567890}');
    await expectUsable();
    let answer = () => {};
    await page.route('**/bookmarks', async route => {
      await new Promise<void>(resolve => {
        answer = resolve;
      });
      await route.continue();
    });
    await page.getByRole('button', { name: 'Store' }).click();
    // What was typed while it is stored would be dropped.
    await expect.poll(() => page.getByLabel('State').isEditable()).toBe(false);
    answer();
    await page.waitForURL(/bookmark=\w{26}$/);
    await page.unrouteAll({ behavior: 'wait' });
    const shown = page.getByRole('region', { name: 'JSON' });
    expect(await shown.textContent()).toBe('{"zoom": 1.50, "at": 12345678901234567890}');
    await expectUsable();
    await page.getByRole('button', { name: 'Remove' }).click();
    await dialog().getByRole('button', { name: 'Remove the bookmark' }).click();
    await page.getByText('No bookmark yet').waitFor();
  });

  test('files and folders are dropped and chosen, and become what is read in them', async () => {
    await show('Models');
    await rowOf('day').getByRole('link').click();
    await page.getByRole('link', { name: 'Upload files' }).click();
    await expectUsable();
    const dropped = await page.evaluateHandle(`(() => {
      const data = new DataTransfer();
      data.items.add(new File(['a;b\\n1;2\\n'], 'wind.csv'));
      data.items.add(new File(['read me'], 'notes.txt'));
      return data;
    })()`);
    await page.dispatchEvent('.drop-zone', 'drop', { dataTransfer: dropped });
    await page.getByLabel('Choose a folder').setInputFiles(folder.path);
    const staged = page.getByRole('region', { name: 'To be uploaded' });
    await staged.getByText('roof/sun.csv').waitFor();
    await staged.getByRole('button', { name: 'Leave out roof/deep/rain.csv' }).waitFor();
    await staged.getByText('How it is read').click();
    await staged.getByLabel('delimiter').fill(';');
    await expectUsable();
    await staged.getByRole('button', { name: 'Upload 4 files' }).click();
    await expect
      .poll(() => page.getByText('Stored', { exact: true }).count(), { timeout: 40_000 })
      .toBe(2);
    await expectUsable();
    await show('Content');
    for (const name of ['wind.csv', 'notes.txt', 'roof/sun.csv', 'roof/deep/rain.csv'])
      await rowOf(name).first().waitFor();
    expect(await rowOf('notes.txt').first().textContent()).toContain('File');
    expect(await rowOf('roof/sun.csv').first().textContent()).toContain('Table');
    await expectUsable();
  });

  test('a folder without files is told', async () => {
    await show('Upload');
    const empty = join(folder.path, '../empty');
    mkdirSync(empty);
    const { x, y } = (await page.locator('.drop-zone').boundingBox()) ?? { x: 0, y: 0 };
    const devtools = await page.context().newCDPSession(page);
    const data = { items: [], files: [empty], dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
      await devtools.send('Input.dispatchDragEvent', { type, x: x + 9, y: y + 9, data });
    await page.getByText('There is no file in what you dropped.').waitFor();
    await expectUsable();
    await show('Content');
  });

  test('an error of a file is told with its row and column, and shown in the text around it', async () => {
    await show('Upload');
    const rows = Array.from({ length: 5_000 }, (_, n) => `${n},${n / 2},"clear, dry"`);
    rows[3_999] = '3999,fast,"clear, dry"';
    // Long lines scroll in their box, and leave the page as wide as it is.
    rows[4_000] = `4000,1,"${'dry '.repeat(3_000)}"`;
    const buffer = Buffer.from(['second,speed,sky', ...rows].join('\n'));
    const file = { name: 'broken.csv', mimeType: 'text/csv', buffer };
    const good = { name: 'good.csv', mimeType: 'text/csv', buffer: Buffer.from('speed\n1\n') };
    await page.getByLabel('Choose files').setInputFiles([file, good]);
    await page.getByText('How it is read').click();
    await page.getByLabel('types').fill('{"speed": "number"}');
    await page.getByRole('button', { name: 'Upload 2 files' }).click();
    const around = page.getByRole('region', { name: 'Lines around line 4001' });
    await around.waitFor();
    await page.getByText('broken.csv, line 4001, column speed:').waitFor();
    expect(await around.locator('mark').textContent()).toBe('fast');
    expect(await around.locator('div').count()).toBe(5);
    expect(await around.textContent()).toContain('40003998,1999,"clear, dry"');
    await expectUsable();
    await page.getByText('None of the 2 files was stored.').waitFor();
    await page.getByRole('button', { name: 'Upload the other one' }).click();
    await page
      .getByRole('button', { name: 'Clear good.csv', exact: true })
      .click({ timeout: 60_000 });
    await show('Content');
    await rowOf('good.csv').first().waitFor();
    const failed = page.getByRole('region', { name: 'Uploads' });
    await failed.getByText('broken.csv, line 4001, column speed:').waitFor();
    await expectUsable();
  });

  test('an upload goes on after a reload, and sends nothing twice', async () => {
    await show('Upload');
    await page.getByRole('button', { name: 'Clear broken.csv, good.csv' }).click();
    const file = join(folder.path, '../frames.bin');
    writeFileSync(file, randomBytes(20 << 20));
    const sent: string[] = [];
    page.on('request', request => {
      if (request.method() === 'PUT') sent.push(new URL(request.url()).pathname.slice(-9));
    });
    // The network holds the last of three parts back.
    await page.route('**/parts/2', () => {});
    await page.getByLabel('Choose files').setInputFiles(file);
    const partly = page.getByText('16.0 MiB of 20.0 MiB');
    // Not until the page rests: it is held up by what is held back.
    await page.getByRole('button', { name: 'Upload the file' }).click({ noWaitAfter: true });
    await partly.waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: 'Pause frames.bin' }).click();
    await page.getByText('Paused').waitFor();
    await page.getByRole('button', { name: 'Go on with frames.bin' }).click();
    await page.getByText('Sending …').waitFor();
    await partly.waitFor({ timeout: 60_000 });
    page.once('dialog', asked => asked.accept());
    await page.reload();
    await partly.waitFor({ timeout: 60_000 });
    await expectUsable();
    const other = { name: 'other.bin', mimeType: '', buffer: Buffer.from('x') };
    await page.getByLabel('Choose and go on').setInputFiles(other);
    await page.getByText('Another size than what was begun: frames.bin.').waitFor();
    await page.unrouteAll();
    sent.length = 0;
    await page.getByLabel('Choose and go on').setInputFiles(file);
    await page.getByText('Stored', { exact: true }).waitFor({ timeout: 60_000 });
    expect(sent).toEqual(['0/parts/2']);
    const mid = /models\/(\w+)/.exec(page.url())?.[1];
    const { bytes } = await grace.getBytes(`/api/models/${mid}/files/frames.bin`);
    expect(bytes.equals(readFileSync(file))).toBe(true);
    await page.getByRole('link', { name: LONG_NAME }).click();
  });

  test('a project is renamed, and tells what is kept in it', async () => {
    await show('Settings');
    await expectUsable();
    await page.getByLabel('Name').fill('Roof');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await page.getByRole('heading', { name: 'Roof' }).waitFor();
    await show('Videos');
    await page.getByText('No video is kept here').waitFor();
    await expectUsable();
  });

  const put = async (path: string, changes: object) => {
    const answer = await grace.fetch(path, { method: 'PUT', body: JSON.stringify(changes) });
    expect(answer.status).toBe(200);
  };
  const save = () => page.getByRole('button', { name: 'Save' }).click();

  test('what others changed in a project meanwhile is not undone', async () => {
    const path = `/api/projects/${/projects\/(\w+)/.exec(page.url())?.[1]}`;
    await show('Settings');
    await page.getByLabel('Description').fill('one');
    await save();
    await page.getByText('Saved.').waitFor();
    await page.getByLabel('Name').fill('Roof ');
    await put(path, { description: 'two' });
    await page.locator('.description', { hasText: 'two' }).waitFor();
    await page.getByLabel('Name').fill('Mine');
    await save();
    await page.getByRole('heading', { name: 'Mine' }).waitFor();
    expect(await grace.get(path)).toMatchObject({ name: 'Mine', description: 'two' });
    await expect.poll(() => page.getByLabel('Description').inputValue()).toBe('two');
    // What is typed itself is refused, and stays until it is taken back.
    await page.getByLabel('Name').fill('Roof');
    await put(path, { name: 'Theirs' });
    await page.getByRole('heading', { name: 'Theirs' }).waitFor();
    await save();
    expect(await page.getByRole('alert').textContent()).toContain('changed its name meanwhile');
    expect(await page.getByLabel('Name').inputValue()).toBe('Roof');
    await expectUsable();
    await page.getByRole('button', { name: 'Take it back' }).click();
    await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Theirs');
    expect(await grace.get(path)).toMatchObject({ name: 'Theirs' });
    await page.getByLabel('Name').fill('Roof');
    await save();
    await page.getByRole('heading', { name: 'Roof' }).waitFor();
  });

  test('what others changed in a model meanwhile is not undone', async () => {
    await show('Models');
    await rowOf('day').getByRole('link').click();
    await show('Settings');
    const path = `/api/models/${/models\/(\w+)/.exec(page.url())?.[1]}`;
    await page.getByLabel('Marking').fill('internal');
    await put(path, { description: 'two' });
    // The model's validator changes with what is stored in it, which is nothing that the form shows.
    await put(`${path}/parameters/meanwhile`, { value: 1 });
    await save();
    await page.getByText('Saved.').waitFor();
    expect(await grace.get(path)).toMatchObject({ description: 'two', marking: 'internal' });
    await page.getByLabel('Marking').fill('secret');
    await put(path, { marking: 'public' });
    await save();
    expect(await page.getByRole('alert').textContent()).toContain('changed its marking meanwhile');
    await page.getByRole('button', { name: 'Take it back' }).click();
    await expect.poll(() => page.getByLabel('Marking').inputValue()).toBe('public');
    await page.getByRole('link', { name: 'Roof' }).click();
  });

  test('behind a proxy that compresses, and so weakens validators, all is changed as without it', async () => {
    await page.route('**/api/**', async route => {
      if (route.request().method() !== 'GET') return route.continue();
      const response = await route.fetch();
      const tag = response.headers().etag;
      // As nginx does, and as Apache does beside.
      const changed = tag?.replace(/"$/, '-gzip"');
      const headers = { ...response.headers(), ...(tag && { etag: `W/${changed}` }) };
      await route.fulfill({ response, headers });
    });
    await page.reload();
    await rowOf('day').getByRole('link').click();
    await page.getByRole('link', { name: 'meanwhile', exact: true }).click();
    const mid = /models\/(\w+)/.exec(page.url())?.[1];
    await page.getByLabel('Value').fill('2');
    await page.getByRole('button', { name: 'Store' }).click();
    await expect.poll(() => grace.get(`/api/models/${mid}/parameters/meanwhile`)).toBe(2);
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.getByRole('link', { name: 'Roof' }).click();
    await show('People');
    await page.getByLabel('User name').fill('ada');
    await page.getByRole('button', { name: 'Add' }).click();
    await rowOf('ada').waitFor();
    await show('Settings');
    await page.getByLabel('Description').fill('three');
    await save();
    await page.getByText('Saved.').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('a project is deleted once it is said what goes with it', async () => {
    await show('Settings');
    await page.getByRole('button', { name: 'Delete the project' }).click();
    const asked = await dialog().textContent();
    expect(asked).toContain('Roof goes with 1 model');
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await page.getByLabel('Name').fill(LONG_NAME);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: LONG_NAME }).waitFor();
    await page.getByRole('button', { name: 'Delete the project' }).click();
    const widths = await dialog().evaluate(({ scrollWidth, clientWidth }) => [
      scrollWidth,
      clientWidth,
    ]);
    expect(widths[0]).toBe(widths[1]);
    await dialog()
      .getByRole('button', { name: `Delete ${LONG_NAME}` })
      .click();
    await page.getByText('No project yet').waitFor();
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });
});
