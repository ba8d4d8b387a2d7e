import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import {
  type ConsolePage,
  expectAccessible,
  expectToFit,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/console-page.ts';
import { describeStack } from '../harness/forms.ts';
import { missingPrograms } from '../harness/skip.ts';
import { useStack } from '../harness/use-stack.ts';

const PASSWORD = 'a long enough password';
const LONG_NAME = 'measured'.repeat(20);

describeStack(missingPrograms('chromium'), 'projects in the console', form => {
  const { stack, client } = useStack(form);
  const browser = useChromium();
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    await client.post('/api/users', { username: 'grace', password: PASSWORD });
    await client.post('/api/users', { username: 'ada', password: PASSWORD });
    opened = await openConsole(browser, stack.url, { path: 'projects' });
    page = opened.page;
    await logInToConsole(page, { username: 'grace', password: PASSWORD });
  });

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
    expect(await page.getByRole('alert').textContent()).toContain('nobody-here');
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
    await page.getByRole('button', { name: 'Remove ada' }).click();
    await rowOf('ada').waitFor({ state: 'detached' });
    expect(await listed()).toEqual([]);
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

  test('a project is deleted once it is said what goes with it', async () => {
    await show('Settings');
    await page.getByRole('button', { name: 'Delete the project' }).click();
    const asked = await dialog().textContent();
    expect(asked).toContain('Roof goes with 1 model');
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete the project' }).click();
    await dialog().getByRole('button', { name: 'Delete Roof' }).click();
    await page.getByText('No project yet').waitFor();
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });
});
