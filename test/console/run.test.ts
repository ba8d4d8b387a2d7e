import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
import { makeTable } from '../harness/clients/tables.ts';
import { addUser } from '../harness/clients/users.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { addHost, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startSlurm } from '../harness/hosts/slurm.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';

const slurmPrograms = ['slurmctld', 'slurmd', 'sbatch', 'munged'] as const;
const missing = missingPrograms('sshd', 'chromium', ...slurmPrograms);

describeStack(missing, 'commands and their jobs in the console', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const slurm = useStarted(startSlurm);
  const browser = useChromium();
  const directory = makeTempDir('console-run');
  let sid: string;
  let opened: ConsolePage;
  let page: Page;

  beforeAll(async () => {
    slurm.offerTo(sshd);
    sid = await openSession(client, sshd);
    opened = await openConsole(browser, stack.url, { path: 'run' });
    page = opened.page;
    await logInToConsole(page, stack);
  });
  afterAll(() => directory.remove());

  const go = (path: string) => page.goto(`${stack.url}/console/${path}`);
  const dialog = () => page.locator('dialog');
  const command = () => page.locator('.command > textarea');
  const lines = () => page.locator('.log-text').allTextContents();
  const rows = () => page.locator('.jobs tbody tr');
  const facts = () => page.getByRole('region', { name: 'Facts' });
  const search = () => Object.fromEntries(new URL(page.url()).searchParams);
  const expectUsable = async () => {
    await expectAccessible(page);
    await expectToFit(page);
  };

  test('a line of the environment that is no variable is told, and nothing runs', async () => {
    await go(`run?session=${sid}`);
    await command().fill('echo "$FIRST, $SECOND"');
    await page.getByText('Options').click();
    await page.getByLabel('Environment').fill('FIRST=1=1\nSECOND 2');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Line 2 of the environment has no "=": SECOND 2').waitFor();
    expect(search()).not.toHaveProperty('job');
    await page.getByLabel('Environment').fill('FIRST=1=1\nSECOND=2');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(lines).toEqual(['1=1, 2']);
  });

  test('what is typed stays while other pages are looked at, and earlier commands are chosen', async () => {
    await page.getByLabel('Environment').fill('THIRD=3');
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await rows().first().waitFor();
    await page.goBack();
    expect(await page.getByLabel('Environment').inputValue()).toBe('THIRD=3');
    await page.getByText('History').click();
    await expectUsable();
    await page.getByRole('button', { name: 'echo "$FIRST, $SECOND"' }).click();
    expect(await command().inputValue()).toBe('echo "$FIRST, $SECOND"');
    await page.getByLabel('Environment').fill('');
  });

  test('options stay for the next command, and are told where they are folded', async () => {
    await go(`run?session=${sid}`);
    const options = page.locator('.command-end > details');
    const summary = options.locator('summary');
    if (!(await options.evaluate(element => element.hasAttribute('open')))) await summary.click();
    await page.getByLabel('Folder').fill('/tmp');
    await page.getByLabel('Environment').fill('SEED=7');
    await command().fill('pwd; echo "$SEED"');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(lines).toEqual(['/tmp', '7']);
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await rows().first().waitFor();
    await page.goBack();
    expect(await page.getByLabel('Folder').inputValue()).toBe('/tmp');
    await command().fill('echo "anew $SEED"; pwd');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(lines).toEqual(['anew 7', '/tmp']);
    await summary.click();
    expect(await summary.innerText()).toBe('Options: /tmp, 1 variable');
    await expectUsable();
    await summary.click();
    for (const field of ['Folder', 'Environment']) await page.getByLabel(field).fill('');
    expect(await summary.innerText()).toBe('Options');
  });

  test('a command that is accepted late turns no batch job into a command', async () => {
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    await page.route('**/api/remotes/launch', async route => {
      const response = await route.fetch();
      await held;
      await route.fulfill({ response });
    });
    await go(`run?session=${sid}`);
    await command().fill('echo of a late answer');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Starting …').waitFor();
    await page.getByText('Batch job').click();
    await command().fill('#!/bin/sh\n');
    release();
    await expect.poll(search).toMatchObject({ job: expect.any(String) });
    expect(search()).toMatchObject({ session: sid, as: 'batch' });
    expect(await command().inputValue()).toBe('#!/bin/sh\n');
    await page.unrouteAll();
  });

  test('a batch job is submitted, waited for, and read as it runs', async () => {
    await go(`run?session=${sid}`);
    await page.getByRole('region', { name: 'Latest on host' }).getByText('$FIRST').waitFor();
    await page.getByText('Batch job').click();
    expect(search()).toMatchObject({ as: 'batch' });
    await page.getByText('Slurm runs it when there is room.').waitFor();
    await expectUsable();
    await command().fill('#!/bin/sh\necho never');
    await page.getByLabel('More options').fill('--hold');
    await page.getByLabel('Cores a task').fill('1');
    await page.getByLabel('Time, in minutes').fill('2');
    await page.getByLabel('Queue').fill('main');
    await page.getByRole('button', { name: 'Submit' }).click();
    await page.locator('.run-label').click();
    await page.getByText(/It waits in Slurm as job \d+: JobHeldUser/).waitFor({ timeout: 60_000 });
    await expectUsable();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.badge', { hasText: 'Cancelled' }).waitFor();
    await go(`run?session=${sid}&as=batch`);
    // They stay for the next job.
    await page.getByLabel('More options').fill('');
    await page.getByLabel('Environment').fill('WORD=batch');
    await command().fill('echo "$WORD on $SLURM_JOB_NUM_NODES"');
    await page.getByRole('button', { name: 'Submit' }).click();
    await expect.poll(lines, { timeout: 60_000 }).toEqual(['batch on 1']);
  });

  test('a certificate goes with its key to a host that wants one', async () => {
    const at = (name: string) => join(directory.path, name);
    const keygen = (...args: string[]) => execFileSync('ssh-keygen', ['-q', ...args]);
    for (const name of ['authority', 'key']) keygen('-t', 'ed25519', '-N', '', '-f', at(name));
    keygen('-s', at('authority'), '-I', 'console', '-n', sshd.username, at('key.pub'));
    const trusting = await startTestSshd({
      lines: [`TrustedUserCAKeys "${at('authority.pub')}"`, 'AuthorizedKeysFile none'],
    });
    try {
      await addHost(client, trusting, { name: 'trusting' });
      await go('run');
      await page.getByRole('button', { name: 'Log in to a host' }).click();
      await chooseByName(dialog(), { label: 'Host', name: 'trusting' });
      await dialog().getByLabel('User name there').fill(trusting.username);
      await dialog().getByText('Key file').click();
      await dialog().getByLabel('Private key').setInputFiles(at('key'));
      await expectUsable();
      await dialog().getByRole('button', { name: 'Log in' }).click();
      await dialog().getByRole('alert').waitFor();
      await dialog().getByLabel('Certificate').setInputFiles(at('key-cert.pub'));
      await dialog().getByRole('button', { name: 'Log in' }).click();
      await dialog().waitFor({ state: 'detached' });
      await page.getByLabel('Command on trusting').waitFor();
    } finally {
      await trusting.stop();
    }
  });

  test('a host behind a jump host is logged in to with another key there', async () => {
    const gate = await startTestSshd();
    try {
      await addHost(client, gate, { name: 'gate' });
      const { port, hostKey } = sshd;
      const node = { name: 'node', address: 'localhost', port, keys: [hostKey], jump: 'gate' };
      await client.post('/api/hosts', node);
      const keyFile = (privateKey: string) => ({
        name: 'key',
        mimeType: 'text/plain',
        buffer: Buffer.from(privateKey),
      });
      await go('run');
      await page.getByRole('button', { name: 'Log in to a host' }).click();
      await chooseByName(dialog(), { label: 'Host', name: 'node' });
      await dialog().getByLabel('User name there').fill(sshd.username);
      await dialog().getByText('Key file').click();
      await dialog().getByLabel('Private key').setInputFiles(keyFile(sshd.privateKey));
      await dialog().getByRole('button', { name: 'Log in' }).click();
      expect(await dialog().getByRole('alert').textContent()).toContain('at the jump host gate');
      await dialog().getByText('The way leads through gate').click();
      const other = dialog().getByRole('group', { name: 'Login to gate' });
      await other.getByLabel('User name on gate').fill(gate.username);
      await other.getByText('Key file').click();
      await other.getByLabel('Private key').setInputFiles(keyFile(gate.privateKey));
      await dialog().getByLabel('Each command reads the start-up files').check();
      await expectUsable();
      await dialog().getByRole('button', { name: 'Log in' }).click();
      await dialog().waitFor({ state: 'detached' });
      await page.getByLabel('Command on node').waitFor();
      const { items } = await client.get<{ items: { hostname: string }[] }>('/api/remotes');
      expect(items.find(({ hostname }) => hostname === 'node')).toMatchObject({ startup: 'each' });
    } finally {
      await gate.stop();
    }
  });

  test('the host that a password is for stays as it was when it was typed', async () => {
    const host = () => dialog().getByRole('combobox', { name: 'Host' });
    const openDialog = async () => {
      await go('run');
      await page.getByRole('button', { name: 'Log in to a host' }).click();
    };
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    // That of the last login.
    await page.route('**/api/hosts/node', async route => {
      await held;
      await route.continue();
    });
    await openDialog();
    await dialog().locator('input[type=password]').fill('secret');
    const answered = page.waitForResponse('**/api/hosts/node');
    release();
    await answered;
    await host().click();
    await dialog().getByRole('option', { name: 'node' }).waitFor();
    await page.keyboard.press('Escape');
    expect(await host().inputValue()).toBe('');
    await page.unrouteAll();
    await page.evaluate("localStorage.removeItem('windlass.account')");
    await openDialog();
    await expect.poll(() => host().inputValue()).toBe('gate');
    await addHost(client, sshd, { name: 'a-first-one' });
    await expect
      .poll(async () => {
        await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
        await host().click();
        const options = await dialog().getByRole('option').allTextContents();
        await page.keyboard.press('Escape');
        return options;
      })
      .toContain('a-first-one');
    expect(await host().inputValue()).toBe('gate');
    await client.delete('/api/hosts/a-first-one');
  });

  test('jobs are found by project, model and time, and lead to what they belong to', async () => {
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'Weather' });
    const model = { name: 'Summer', 'model-type': 'measurements' };
    const path = `/api/projects/${pid}/models`;
    const { id: mid } = await client.post<{ id: string }>(path, model);
    await makeTable(client, { mid, aid: 'roof', csv: 'a,b\n1,2\n' });
    await go('jobs');
    await rows().first().waitFor();
    expect(await rows().count()).toBeGreaterThan(1);
    await chooseByName(page, { label: 'Project', name: 'Weather' });
    await expect.poll(() => rows().count()).toBe(1);
    await chooseByName(page, { label: 'Model', name: 'Summer' });
    await page.getByLabel('Created').selectOption('Last hour');
    expect(search()).toEqual({ project: pid, model: mid, within: 'hour' });
    await expectUsable();
    await page.getByLabel('Created').selectOption('From … to …');
    await page.getByLabel('Created before').fill('2001-01-01T00:00');
    await page.getByText('No job matches').waitFor();
    expect(search().until).toMatch(/^2\d{3}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    await page.getByLabel('Created before').fill('');
    await rows().getByRole('link').click();
    await facts().getByRole('link', { name: 'Weather' }).waitFor();
    await facts().getByRole('link', { name: 'Summer' }).click();
    await page.getByRole('heading', { name: 'Summer' }).waitFor();
    await page.goBack();
    expect(await page.getByRole('list', { name: 'Attempts' }).textContent()).toMatch(/succeeded$/);
    await expectUsable();
  });

  test('jobs of the filter before are told from those of the one that is chosen', async () => {
    await go('jobs');
    await rows().first().waitFor();
    const release = await holdRequests(page, /\/api\/jobs\?/);
    await page.getByText('Failed', { exact: true }).first().click();
    await page.getByText('Asking for jobs').waitFor();
    const opacity = () =>
      page.evaluate<number>(
        "Number(getComputedStyle(document.querySelector('.card:has(.jobs)')).opacity)",
      );
    await expect.poll(opacity).toBeLessThan(1);
    release();
    await page.getByText('Asking for jobs').waitFor({ state: 'detached' });
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('jobs of a host are not shown as those of another one that is chosen', async () => {
    await addHost(client, sshd, { name: 'other' });
    const other = await openSession(client, sshd, { hostname: 'other' });
    await go(`run?session=${sid}`);
    await page.getByRole('region', { name: 'Latest on host' }).getByRole('row').first().waitFor();
    const release = await holdRequests(page, /\/api\/jobs\?/);
    await page.evaluate(`history.pushState(null, '', location.pathname + '?session=${other}')`);
    await page.getByRole('region', { name: 'Latest on host' }).waitFor({ state: 'detached' });
    expect(await rows().count()).toBe(0);
    release();
    await page.unrouteAll({ behavior: 'wait' });
    await client.delete(`/api/remotes/${other}`);
    await client.delete('/api/hosts/other');
  });

  test('an administrator chooses an owner, whose work is not looked into', async () => {
    const { username, client: other } = await addUser(client);
    const { id } = await launchAsync(other, await openSession(other, sshd), 'echo secret');
    await waitForEnd(other, id);
    await go('jobs?search=echo');
    await rows().first().waitFor();
    await chooseByName(page, { label: 'Owner', name: username });
    await rows()
      .filter({ hasText: `command of ${username}` })
      .waitFor();
    expect(await page.getByLabel('A part of the label').isDisabled()).toBe(true);
    await expectUsable();
    await page.getByRole('link', { name: 'Clear' }).click();
    await expect.poll(search).toEqual({});
  });

  test('a host that is unreachable is told where its command runs', async () => {
    const link = await startTcpProxy({ host: sshd.host, port: sshd.port });
    try {
      await addHost(client, sshd, { name: 'distant', port: link.port });
      const far = await openSession(client, sshd, { hostname: 'distant' });
      await go(`run?session=${far}`);
      await command().fill('echo begun; sleep 600');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await expect.poll(lines).toEqual(['begun']);
      link.refuse();
      await page
        .getByText('distant cannot be reached just now. What runs there goes on')
        .waitFor({ timeout: 60_000 });
      await expectUsable();
      link.heal();
      await page.getByText('cannot be reached just now').waitFor({ state: 'detached' });
    } finally {
      await link.stop();
    }
  });

  test('how long a command ran stays as it was at its end', async () => {
    const { id } = await launchAsync(client, sid, 'sleep 2');
    let isLate = false;
    let release = () => {};
    const ended = new Promise<void>(resolve => {
      release = resolve;
    });
    // The record tells the end before the history is asked for.
    await page.route(`**/api/jobs/${id}/history`, async route => {
      if (isLate) return route.continue();
      isLate = true;
      const response = await route.fetch();
      await ended;
      await route.fulfill({ response });
    });
    await go(`jobs/${id}`);
    const timeline = page.getByRole('region', { name: 'Timeline' });
    await timeline.getByText('Ran', { exact: true }).waitFor();
    release();
    await timeline.getByText(/^What happened, \d+ steps$/).click();
    await timeline.getByText('Ended', { exact: true }).nth(1).waitFor();
    await page.unrouteAll();
  });

  test('all of what a job runs is seen, changed and run anew', async () => {
    const command = 'cd study 2> /dev/null\necho "$WORD"';
    const asked = { command, env: { WORD: 'hidden' }, cwd: '/tmp', timeout: 60, sid };
    const prefer = { Prefer: 'respond-async' };
    const { id } = await client.post<{ id: string }>('/api/remotes/launch', asked, prefer);
    await waitForEnd(client, id);
    await go(`jobs/${id}`);
    const runs = page.getByRole('region', { name: 'What it runs' });
    expect(await runs.getByRole('region', { name: 'Command' }).textContent()).toBe(command);
    expect(await runs.getByRole('definition').allTextContents()).toEqual(['/tmp', 'WORD', '60 s']);
    await expectUsable();
    const typed = 'rm -r results # not sent yet';
    const draft = JSON.stringify({ command: typed, fields: {} });
    await page.evaluate(`sessionStorage.setItem('windlass.command', ${JSON.stringify(draft)})`);
    const change = () => page.getByRole('button', { name: 'Change and run' }).click();
    await change();
    const question = page.locator('dialog');
    await question.getByText(typed).waitFor();
    await expectUsable();
    await question.getByRole('button', { name: 'Keep' }).click();
    expect(new URL(page.url()).pathname).toBe(`/console/jobs/${id}`);
    await change();
    await question.getByRole('button', { name: 'Replace it' }).click();
    await page.waitForURL('**/console/run**');
    // What nobody has typed is replaced without a question.
    await go(`jobs/${id}`);
    await change();
    await page.waitForURL('**/console/run**');
    expect(await page.locator('.command > textarea').inputValue()).toBe(command);
    expect(await page.getByLabel('Folder').inputValue()).toBe('/tmp');
    expect(await page.getByLabel('Time limit').inputValue()).toBe('60');
    // A value that is not told is asked for.
    expect(await page.getByLabel('Environment').inputValue()).toBe('WORD');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('alert').getByText('has no "="').waitFor();
    await page.getByLabel('Environment').fill('WORD=again');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.log-row', { hasText: 'again' }).waitFor();
    // The command was sent, and this was not.
    await page.getByLabel('Folder').fill('/var');
    await go(`jobs/${id}`);
    await change();
    await question.getByText('Options that are filled in: 3.').waitFor();
    await question.getByRole('button', { name: 'Keep' }).click();
  });

  test('a progress bar is drawn as it grows behind lines of the other stream', async () => {
    const gates = ['first', 'second'].map(name => join(directory.path, name));
    const [first = '', second = ''] = gates;
    execFileSync('mkfifo', gates);
    const open = (gate: string) => execFileSync('sh', ['-c', `: > '${gate}'`]);
    const { id } = await launchAsync(
      client,
      sid,
      `printf ' 10%%|#' >&2; : < '${first}'; echo epoch; : < '${second}'; printf '\\r100%%|##' >&2`,
    );
    await go(`jobs/${id}`);
    await expect.poll(lines).toEqual([' 10%|#']);
    open(first);
    await expect.poll(lines).toEqual([' 10%|#', 'epoch']);
    open(second);
    await expect.poll(lines).toEqual(['100%|##', 'epoch']);
  });

  test('all of a command is seen that its title cuts', async () => {
    const long = `echo ${'word '.repeat(30)}last`;
    const { id } = await launchAsync(client, sid, long);
    await waitForEnd(client, id);
    await go(`jobs/${id}`);
    const runs = page.getByRole('region', { name: 'What it runs' });
    expect(await runs.getByRole('region', { name: 'Command' }).textContent()).toBe(long);
    await runs.getByRole('button', { name: 'Copy' }).waitFor();
    await expectUsable();
  });

  test('a job that has ended is removed, once that is meant', async () => {
    const { id } = await launchAsync(client, sid, 'echo to be removed');
    await waitForEnd(client, id);
    await go(`jobs/${id}`);
    await facts().getByRole('link', { name: 'Run more there' }).waitFor();
    await page.getByRole('button', { name: 'Remove' }).click();
    await expectAccessible(page);
    await dialog().getByRole('button', { name: 'Keep' }).click();
    await page.getByRole('button', { name: 'Remove' }).click();
    await dialog().getByRole('button', { name: 'Remove it' }).click();
    await page.waitForURL('**/console/jobs');
    await rows().first().waitFor();
    expect(await page.locator('main').textContent()).not.toContain('to be removed');
    expect((await client.fetch(`/api/jobs/${id}`)).status).toBe(404);
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });
});
