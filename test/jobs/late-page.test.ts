import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { guide } from '../harness/files/guide.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const [, script = ''] =
  /```js\n(const events = new EventSource[^`]*`[^`]*`[\s\S]*?)```/.exec(guide) ?? [];

describeStack(missingPrograms('sshd', 'chromium'), "the guide's page that follows a job", form => {
  const { stack, client, sshd } = useRemoteStack(form);
  let browser: Browser;

  beforeAll(async () => {
    const executablePath = findProgram('chromium');
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  });
  afterAll(() => browser?.close());

  /** A page of a user who is logged in, with the guide's script as it is printed. */
  async function openPage(job: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${stack.url}/healthz`);
    const { username, password } = stack;
    const user = JSON.stringify({ username, password });
    const elements = ['stdout', 'stderr', 'message', 'state'].map(id => `<pre id=${id}></pre>`);
    await page.evaluate(`fetch('/api/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: ${JSON.stringify(user)},
    }).then(() => { document.body.innerHTML = '${elements.join('')}'; })`);
    const given = `const job = ${JSON.stringify(job)};`;
    await page.evaluate(`{ ${given}\n${script}\nwindow.events = events; }`);
    return page;
  }

  async function read(page: Page) {
    const [out, err, state] = await Promise.all(
      ['#stdout', '#stderr', '#state'].map(id => page.locator(id).textContent()),
    );
    const isClosed = await page.evaluate('events.readyState === EventSource.CLOSED');
    return { out, err, state, isClosed };
  }

  test('shows all of it, opened before the end or after it, and then stops asking', async () => {
    const sid = await openSession(client, sshd);
    const go = join(sshd.home, `go-${sid}`);
    const wait = `while ! test -e ${go}; do sleep 0.1; done`;
    const { id } = await launchAsync(client, sid, `echo begun; ${wait}; seq 1 3000; echo bad >&2`);
    const early = await openPage(id);
    await waitFor(async () => (await read(early)).out === 'begun\n', { what: 'the first line' });
    writeFileSync(go, '');
    await waitForEnd(client, id);
    const late = await openPage(id);
    const out = String(await readOutput(client, id));
    for (const page of [early, late]) {
      await waitFor(async () => (await read(page)).isClosed, { what: 'the page to know the end' });
      expect(await read(page)).toEqual({ out, err: 'bad\n', state: 'succeeded', isClosed: true });
    }
  });

  test('an EventSource that nobody closes stops by itself', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'echo once');
    await waitForEnd(client, id);
    const page = await openPage(id);
    const seen = await page.evaluate(`new Promise(resolve => {
      const names = [];
      const unclosed = new EventSource('/api/jobs/${id}/events');
      for (const name of ['state', 'output', 'end'])
        unclosed.addEventListener(name, () => names.push(name));
      unclosed.onerror = () => unclosed.readyState === EventSource.CLOSED && resolve(names);
    })`);
    expect(seen).toEqual(['output', 'state', 'end']);
  });
});
