import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { bundleForPage } from '../harness/browser/page-script.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { useLink } from '../harness/clients/windlass-client.ts';
import { guide } from '../harness/files/guide.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const CLIENT = fileURLToPath(new URL('../../clients/typescript/src/index.ts', import.meta.url));
const MB = 1 << 20;

describeStack(missingPrograms('sshd', 'chromium'), '@windlass/client in a page', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const link = useLink(stack);
  const directory = makeTempDir('client-page');
  let browser: Browser;
  let script: string;
  let page: Page;

  beforeAll(async () => {
    [script, browser] = await Promise.all([
      bundleForPage(CLIENT, 'windlassClient'),
      chromium.launch({ executablePath: findProgram('chromium'), args: ['--no-sandbox'] }),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    directory.remove();
  });
  /** A page of a user who is logged in, with a session on the host. */
  beforeEach(async () => {
    page = await (await browser.newContext()).newPage();
    await page.goto(`http://127.0.0.1:${link.port}/healthz`);
    await page.evaluate(`document.body.innerHTML = '<pre></pre><input type=file>'`);
    await page.addScriptTag({ content: script });
    const { username, privateKey } = sshd;
    const given = { login: { username: stack.username, password: stack.password } };
    await page.evaluate(`(async () => {
      const { login, username, privateKey } = ${JSON.stringify({ ...given, username, privateKey })};
      const body = JSON.stringify(login);
      await fetch('/api/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
      window.windlass = new windlassClient.Windlass({ url: '/' });
      window.session = await windlass.open('host', { username, privateKey });
    })()`);
  });

  const shown = async () => {
    const text = await page.evaluate<string>(`document.querySelector('pre').textContent`);
    return text.split('\n').slice(0, -1);
  };

  test('shows each line of a command once, as they come, though its connections are cut', async () => {
    const count = 300;
    await page.evaluate(
      `(async () => {
      const run = session.run('for n in $(seq ${count}); do echo "Zeile $n ä€"; sleep 0.01; done; exit 4');
      for await (const { text } of run) document.querySelector('pre').append(text + '\\n');
      window.ended = await run.wait();
    })().catch(error => { window.ended = String(error); })`,
    );
    for (let cut = 1; cut <= 4; cut++) {
      await waitFor(async () => (await shown()).length >= cut * 50, { what: `${cut * 50} lines` });
      link.cut();
    }
    const ended = await waitFor(() => page.evaluate('window.ended'), { what: 'the end' });
    expect(ended).toMatchObject({ returncode: 4, errors: '' });
    expect(await shown()).toEqual(Array.from({ length: count }, (_, n) => `Zeile ${n + 1} ä€`));
  });

  test("the guide's script shows a job that has ended before, and one that goes on", async () => {
    const [, guided = ''] = /```js\nimport .*\n\n(const windlass[\s\S]*?)```/.exec(guide) ?? [];
    const commands = [
      'echo out; echo err >&2; exit 4',
      'sleep 0.5; echo out; echo err >&2; exit 4',
    ];
    for (const command of commands) {
      const content = await page.evaluate<string>(`(async () => {
        document.body.innerHTML = '<pre id=stdout></pre><pre id=stderr></pre><p id=state></p>';
        const { Windlass } = windlassClient;
        const run = session.run(${JSON.stringify(command)});
        if (${command.startsWith('echo')}) await run.wait();
        const job = await run.job;
        ${guided}
        return document.body.innerText.split(/\\s+/).filter(Boolean).join(' ');
      })()`);
      expect(content).toBe('out err succeeded 4');
    }
  });

  test('starts a command once, though the answer to its request is lost', async () => {
    const job = page.evaluate<string>(`session.run('sleep 600', { name: 'once' }).job`);
    link.cutAfter('down', 10);
    const id = await job;
    const mine = await client.get<{ items: { id: string }[] }>('/api/jobs?name=once');
    expect(mine.items.map(item => item.id)).toEqual([id]);
    expect(await page.evaluate(`windlass.cancel('${id}')`)).toBe(true);
    expect(await page.evaluate(`windlass.wait('${id}')`)).toMatchObject({ state: 'cancelled' });
  });

  test('uploads the file that its user chooses, over connections that are cut', async () => {
    const bytes = randomBytes(12 * MB);
    const path = join(directory.path, 'chosen.bin');
    writeFileSync(path, bytes);
    const { mid } = await makeModel(client);
    await page.setInputFiles('input', path);
    link.throttle('up', 20 * MB);
    link.cutAfter('up', 5 * MB);
    const told = await page.evaluate<number[]>(`(async () => {
      const [file] = document.querySelector('input').files;
      const told = [];
      const onProgress = ({ sent }) => told.push(sent);
      await windlass.upload(file, { mid: '${mid}', parser: 'blob', partSize: ${MB}, onProgress });
      return told;
    })()`);
    expect(told.at(-1)).toBe(12 * MB);
    const answer = await client.fetch(`/api/models/${mid}/files/chosen.bin`);
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
  });

  test('is told of a login that has ended, and the browser asks for no password', async () => {
    await page.evaluate(`fetch('/api/logout', { method: 'DELETE' })`);
    const error = await page.evaluate(
      `windlass.follow('x').chunks().next().catch(({ name, status, code }) => ({ name, status, code }))`,
    );
    expect(error).toEqual({ name: 'WindlassError', status: 401, code: 'unauthorized' });
  });
});
