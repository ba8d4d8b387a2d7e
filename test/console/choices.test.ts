import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ConsolePage,
  expectAccessible,
  expectToFit,
  holdRequests,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

/** More than the service gives at once. */
const MANY = 2_345;
const idOf = (n: number) => String(n).padStart(26, '0');

describeStack(missingPrograms('chromium'), 'choosing one of many in the console', form => {
  const { stack } = useStack(form);
  const database = useStackDatabase(stack);
  const browser = useChromium();
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    await database`insert into hosts (name, address, keys)
      select 'node-' || lpad(n::text, 5, '0'), 'node.example.org',
        array['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5Q1Lxk0o0n1p0bQn0m8b3v2n1f7k4q9r6t5y8u3i2o']
      from generate_series(1, ${MANY}) n`;
    await database`insert into users (username, password_hash)
      select 'person' || lpad(n::text, 5, '0'), 'none' from generate_series(1, ${MANY}) n`;
    const projects = Array.from({ length: MANY }, (_, n) => ({
      pid: idOf(n),
      name: `Study ${n}`,
    }));
    await database`insert into projects ${database(projects)}`;
    await database`insert into project_members (project, username, role)
      select pid, ${stack.username}, 'administrator' from projects`;
    opened = await openConsole(browser, stack.url, { path: 'jobs' });
    page = opened.page;
    await logInToConsole(page, stack);
  });
  // Removed one by one over HTTP, thousands take minutes.
  afterAll(async () => {
    await database`delete from projects where name like 'Study %'`;
    await database`delete from users where username like 'person%'`;
    await database`delete from hosts where name like 'node-%'`;
  });

  const field = (name: string) => page.getByRole('combobox', { name, exact: true });
  const options = (name: string) =>
    page.getByRole('listbox', { name, exact: true }).getByRole('option');
  const search = () => Object.fromEntries(new URL(page.url()).searchParams);
  const value = (name: string) => field(name).inputValue();

  test('the last of thousands is found by a part of its name, by keys alone', async () => {
    await field('Host').focus();
    await page.keyboard.press('ArrowDown');
    await options('Host').first().waitFor();
    expect(await options('Host').count()).toBe(100);
    expect(await field('Host').getAttribute('aria-expanded')).toBe('true');
    await page.getByText(/^The first 100 of 1,001 and more/).waitFor();
    await expectAccessible(page);
    await page.keyboard.type('02345');
    await options('Host').filter({ hasText: 'node-02345' }).waitFor();
    await page.getByText('1 found.').waitFor();
    const active = await field('Host').getAttribute('aria-activedescendant');
    expect(await page.locator(`[id="${active}"]`).textContent()).toBe('node-02345');
    await expectAccessible(page);
    await expectToFit(page);
    await page.keyboard.press('Enter');
    await expect.poll(search).toEqual({ host: 'node-02345' });
    expect(await field('Host').getAttribute('aria-expanded')).toBe('false');
    expect(await options('Host').count()).toBe(0);
    expect(await value('Host')).toBe('node-02345');
  });

  test('keys go up and down, and leave what was chosen as it was', async () => {
    await field('Host').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('node-0001');
    const active = async () => {
      const id = await field('Host').getAttribute('aria-activedescendant');
      return page.locator(`[id="${id}"]`).textContent();
    };
    await expect.poll(active).toBe('node-00010');
    await page.keyboard.press('ArrowDown');
    await expect.poll(active).toBe('node-00011');
    await page.keyboard.press('PageDown');
    await expect.poll(active).toBe('node-00019');
    await page.keyboard.press('ArrowUp');
    await expect.poll(active).toBe('node-00018');
    await page.keyboard.press('Escape');
    expect(await value('Host')).toBe('node-02345');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('nothing like that');
    await page.getByText('No name has this in it.').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await value('Host')).toBe('node-02345');
    expect(search()).toEqual({ host: 'node-02345' });
  });

  test('a whole name that is typed is chosen when the field is left', async () => {
    await field('Owner').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('PERSON01999');
    await options('Owner').filter({ hasText: 'person01999' }).waitFor();
    await page.keyboard.press('Tab');
    await expect.poll(search).toEqual({ host: 'node-02345', owner: 'person01999' });
    await page.getByRole('link', { name: 'Clear' }).click();
    await expect.poll(() => value('Owner')).toBe('');
  });

  test('what an address names is called by its name before its page was read', async () => {
    await page.goto(`${stack.url}/console/jobs?project=${idOf(2_344)}`);
    await expect.poll(() => value('Project')).toBe('Study 2344');
    await field('Project').click();
    await page.getByRole('option', { name: 'All projects' }).click();
    await expect.poll(search).toEqual({});
  });

  test('in a dialog, Escape closes the list alone', async () => {
    await page.goto(`${stack.url}/console/operate/hosts`);
    await page.getByRole('button', { name: 'Add a host' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a host' });
    await dialog.getByLabel('Name').fill('inner');
    await field('Reached through').click();
    await page.keyboard.type('node-02001');
    await dialog.getByRole('option', { name: 'node-02001' }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await options('Reached through').first().waitFor({ state: 'detached' });
    expect(await dialog.getByLabel('Name').inputValue()).toBe('inner');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  test('an administrator finds a host, and a user, beyond those that are listed', async () => {
    await field('Find a host').click();
    await page.keyboard.type('node-02222');
    await page.getByRole('option', { name: 'node-02222' }).click();
    const dialog = page.getByRole('dialog', { name: 'node-02222' });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Users' }).click();
    await field('Find a user').click();
    await page.keyboard.type('person02000');
    await page.getByRole('option', { name: 'person02000' }).click();
    await page.getByRole('dialog', { name: 'person02000' }).waitFor();
  });

  test('the newest of thousands of projects stands first, and any is found', async () => {
    const models = Array.from({ length: 1_100 }, (_, n) => ({
      mid: idOf(n),
      project: idOf(0),
      name: `Run ${n}`,
      type: 'run',
    }));
    await database`insert into models ${database(models)}`;
    await database`update projects set updated = now() + interval '1 minute'
      where pid = ${idOf(MANY - 1)}`;
    await database`update models set updated = now() + interval '1 minute'
      where mid = ${idOf(1_099)}`;
    const rows = page.locator('tbody tr');
    await page.goto(`${stack.url}/console/projects`);
    await expect.poll(() => rows.first().textContent()).toContain(`Study ${MANY - 1}`);
    // All are sorted, and those that nobody scrolls to are not drawn.
    expect(await rows.count()).toBe(200);
    await page.getByRole('button', { name: 'More projects' }).click();
    await expect.poll(() => rows.count()).toBe(400);
    await page.getByLabel('Names that contain').fill('study 2300');
    await rows.filter({ hasText: 'Study 2300' }).waitFor();
    await expectAccessible(page);
    // Not before the end was read.
    const release = await holdRequests(page, '**/api/projects?*after*');
    await page.goto(`${stack.url}/console/projects?find=nothing`);
    await page.getByText('Looking on, after 1,000 …').waitFor();
    expect(await page.getByText('No name contains that').count()).toBe(0);
    release();
    await page.getByText('No name contains that').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    await page.goto(`${stack.url}/console/projects/${idOf(0)}/models`);
    await expect.poll(() => rows.first().textContent()).toContain('Run 1099');
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });
});
