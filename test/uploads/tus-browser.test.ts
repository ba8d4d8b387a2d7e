import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { bundleForPage } from '../harness/browser/page-script.ts';
import { makeModel, readUpload } from '../harness/clients/uploads.ts';
import { guide } from '../harness/files/guide.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const CLIENTS = fileURLToPath(new URL('../harness/clients/tus-clients.mjs', import.meta.url));
/** The guide's script that begins so. */
const scriptOf = (begin: string) =>
  guide
    .split('```')
    .find(block => block.startsWith(`js\n${begin}`))
    ?.slice(3) ?? '';

/** The scripts that the guide prints; what they leave open is told by the last lines. */
const SCRIPTS = {
  'tus-js-client': `${scriptOf('const upload = new tus.Upload(')}
    window.cancel = () => upload.abort(true);`,
  Uppy: `${scriptOf('const uppy = new Uppy()')}
    window.cancel = () => uppy.cancelAll();`,
};

const SIZE = 40 << 20;
const MB = 1 << 20;

interface Target {
  mid: string;
  aid: string;
}

/** What a page asked of tus, and was answered. */
interface Exchange {
  method: string;
  status: number;
  offset: number;
}

describeStack(missingPrograms('chromium'), 'uploads from a browser', form => {
  const { stack, client } = useStack(form);
  const directory = makeTempDir('browser');
  const file = join(directory.path, 'Messung 1.bin');
  const bytes = randomBytes(SIZE);
  let clients: string;
  let browser: Browser;
  let proxy: TcpProxy;
  let mid: string;

  beforeAll(async () => {
    writeFileSync(file, bytes);
    const executablePath = findProgram('chromium');
    [clients, browser, { mid }] = await Promise.all([
      bundleForPage(CLIENTS, 'clients'),
      chromium.launch({ executablePath, args: ['--no-sandbox'] }),
      makeModel(client),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await proxy?.stop();
    directory.remove();
  });
  beforeEach(async () => {
    await proxy?.stop();
    const { hostname, port } = new URL(stack.url);
    proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  });

  /** A page of a user who is logged in, and what it says to tus. */
  async function openPage(): Promise<{ page: Page; said: Exchange[] }> {
    const page = await (await browser.newContext()).newPage();
    const said: Exchange[] = [];
    page.on('response', response => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith('/api/tus')) return;
      const offset = Number(response.headers()['upload-offset']);
      said.push({ method: response.request().method(), status: response.status(), offset });
    });
    await showPage(page);
    const { username, password } = stack;
    await page.evaluate(`fetch('/api/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify({ username, password }))},
    })`);
    return { page, said };
  }

  async function showPage(page: Page): Promise<void> {
    await page.goto(`http://127.0.0.1:${proxy.port}/healthz`);
    await page.evaluate(`document.body.innerHTML = '<input type=file>'`);
    await page.addScriptTag({ content: clients });
  }

  /** The user chooses the file, and the page's script uploads it. */
  async function choose(page: Page, script: string, { mid, aid }: Target): Promise<void> {
    await page.setInputFiles('input', file);
    const given = JSON.stringify({ mid, aid, parser: 'blob' });
    await page.evaluate(`(async () => {
      const { Uppy, Tus, tus } = clients;
      const { mid, aid, parser } = ${given};
      const [file] = document.querySelector('input').files;
      window.ended = undefined;
      const onSuccess = () => { window.ended = 'success'; };
      const onError = error => { window.ended = String(error); };
      const onComplete = ({ failed }) => { window.ended = failed[0]?.error ?? 'success'; };
      ${script}
    })()`);
  }

  const ended = (page: Page) =>
    waitFor(() => page.evaluate('window.ended'), { what: 'the end', timeoutMs: 60_000 });
  const sent = (count: number) =>
    waitFor(() => proxy.bytes.up >= count, { what: `${count} bytes to be sent`, intervalMs: 5 });
  const of = (method: string, said: Exchange[]) => said.filter(one => one.method === method);

  /** The artifact has the bytes of the file. */
  async function expectFile({ mid, aid }: Target): Promise<void> {
    const path = `/api/models/${mid}/files/${aid}`;
    const answer = await waitFor(
      async () => {
        const found = await client.fetch(path);
        return found.ok ? found : undefined;
      },
      { what: `the file ${aid}` },
    );
    const hash = (of: Uint8Array) => createHash('sha256').update(of).digest('hex');
    expect(hash(new Uint8Array(await answer.arrayBuffer()))).toBe(hash(bytes));
  }

  const uploadsOf = async (aid: string) => {
    const { items } = await client.get<{ items: { id: string; state: string }[] }>('/api/uploads');
    const records = await Promise.all(items.map(({ id }) => readUpload(client, id)));
    return records.filter(one => (one as unknown as { aids: string[] }).aids.includes(aid));
  };

  for (const [name, script] of Object.entries(SCRIPTS)) {
    test(`${name} goes on after each cut, and the bytes come back`, async () => {
      const target = { mid, aid: `cut ${name}` };
      const { page, said } = await openPage();
      proxy.throttle('up', 30 * MB);
      await choose(page, script, target);
      for (let cut = 0; cut < 4; cut++) {
        const at = proxy.bytes.up + 6 * MB;
        proxy.cutAfter('up', 6 * MB);
        await sent(at);
      }
      expect(await ended(page)).toBe('success');
      await expectFile(target);
      expect(of('POST', said)).toHaveLength(1);
      // Chromium sends a PATCH again by itself where the connection had served before; that is refused by its offset.
      const offsets = of('HEAD', said).map(({ offset }) => offset);
      expect(offsets.length).toBeGreaterThanOrEqual(2);
      expect(offsets).toEqual([...new Set(offsets)].toSorted((a, b) => a - b));
      expect(offsets[0]).toBeGreaterThan(5 * MB);
    });

    test(`${name} in a page that is loaded again goes on where the upload stood`, async () => {
      const target = { mid, aid: `again ${name}` };
      const { page, said } = await openPage();
      proxy.throttle('up', 30 * MB);
      await choose(page, script, target);
      await sent(15 * MB);
      await showPage(page);
      const before = proxy.bytes.up;
      // For another target it is another upload.
      await choose(page, script, { mid, aid: `other ${name}` });
      expect(await ended(page)).toBe('success');
      expect(of('HEAD', said)).toEqual([]);
      const between = proxy.bytes.up;
      expect(between - before).toBeGreaterThan(SIZE);
      await showPage(page);
      await choose(page, script, target);
      expect(await ended(page)).toBe('success');
      await expectFile(target);
      expect(of('POST', said)).toHaveLength(2);
      expect(of('HEAD', said)).toMatchObject([{ status: 200 }]);
      expect(of('HEAD', said)[0]?.offset).toBeGreaterThan(13 * MB);
      expect(proxy.bytes.up - between).toBeLessThan(SIZE - 13 * MB);
      // Neither is resumed: the same file is sent once more.
      expect(await page.evaluate('Object.keys(localStorage)')).toEqual([]);
    });

    test(`${name} removes an upload that its user cancels`, async () => {
      const target = { mid, aid: `cancelled ${name}` };
      const { page, said } = await openPage();
      proxy.throttle('up', 10 * MB);
      await choose(page, script, target);
      await sent(5 * MB);
      expect(await uploadsOf(target.aid)).toMatchObject([{ state: 'open' }]);
      await page.evaluate('void cancel()');
      await waitFor(() => of('DELETE', said).length > 0, { what: 'the answer to DELETE' });
      expect(of('DELETE', said)).toMatchObject([{ status: 204 }]);
      expect(await uploadsOf(target.aid)).toEqual([]);
    });
  }

  test('tus-js-client may send the first bytes with POST, and POST in place of PATCH', async () => {
    const target = { mid, aid: 'variants' };
    const { page, said } = await openPage();
    proxy.throttle('up', 30 * MB);
    const options = `uploadDataDuringCreation: true, overridePatchMethod: true, chunkSize: ${16 * MB},`;
    const script = SCRIPTS['tus-js-client'].replace('endpoint:', `${options} endpoint:`);
    await choose(page, script, target);
    const at = 10 * MB;
    proxy.cutAfter('up', at);
    await sent(at);
    expect(await ended(page)).toBe('success');
    await expectFile(target);
    expect(of('PATCH', said)).toEqual([]);
    // Nobody knows of the upload whose POST was cut.
    expect(await uploadsOf(target.aid)).toHaveLength(1);
  });

  test('one file in two pages at once is one upload, which both see succeed', async () => {
    const target = { mid, aid: 'two pages' };
    const { page, said } = await openPage();
    proxy.throttle('up', 20 * MB);
    await choose(page, SCRIPTS.Uppy, target);
    await sent(5 * MB);
    const other = await page.context().newPage();
    await showPage(other);
    await choose(other, SCRIPTS.Uppy, target);
    expect([await ended(page), await ended(other)]).toEqual(['success', 'success']);
    await expectFile(target);
    expect(of('POST', said)).toHaveLength(1);
    expect(await uploadsOf(target.aid)).toHaveLength(1);
  });
});
