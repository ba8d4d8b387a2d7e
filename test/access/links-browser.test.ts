import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { guide } from '../harness/files/guide.ts';
import { addHost, connectClient, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const [, script = ''] = /```js\n(const authorization = [\s\S]*?)```/.exec(guide) ?? [];
const FRAMES = 20;

describeUnless(missingPrograms('sshd', 'ffmpeg', 'chromium'), 'a page of another origin', () => {
  let stack: Stack;
  let sshd: TestSshd;
  let app: Server;
  let browser: Browser;
  let page: Page;
  let sid: string;
  let token: string;

  beforeAll(async () => {
    app = createServer((_req, res) => {
      res.setHeader('Content-Type', 'text/html').end('<!doctype html><pre></pre><video muted>');
    }).listen(0, '127.0.0.1');
    await once(app, 'listening');
    const origin = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
    [stack, sshd, browser] = await Promise.all([
      startStack({ workers: 1, env: { ALLOWED_ORIGINS: origin } }),
      startTestSshd(),
      chromium.launch({ executablePath: findProgram('chromium'), args: ['--no-sandbox'] }),
    ]);
    const client = connectClient(stack);
    await addHost(client, sshd);
    sid = await openSession(client, sshd);
    const given = { name: 'of the page', scope: 'write' };
    ({ token } = await client.post<{ token: string }>('/api/users/-/tokens', given));
    page = await browser.newPage();
    await page.goto(origin);
  });
  afterAll(async () => {
    await browser?.close();
    await Promise.all([stack?.stop(), sshd?.stop()]);
    app?.close();
  });

  /** Runs in the page, with what the guide says that its script is given. */
  const run = (code: string, given: object = {}): Promise<unknown> => {
    const names = Object.entries({ url: stack.url, token, sid, ...given });
    const known = names.map(([name, value]) => `const ${name} = ${JSON.stringify(value)};`);
    return page.evaluate(`(async () => { ${known.join('\n')}\n${code} })()`);
  };
  /** A POST by the page's script; the body and the header Location, which it may read. */
  const post = (path: string, body: object) =>
    run(
      `const answer = await fetch(url + path, {
        method: 'POST',
        headers: {
          Authorization: 'Bearer ' + token,
          'Content-Type': 'application/json',
          Prefer: 'respond-async',
        },
        body: JSON.stringify(body),
      });
      return { ...(await answer.json()), location: answer.headers.get('Location') };`,
      { path, body },
    ) as Promise<Record<string, string>>;

  test("the guide's script follows a command and shows a video, in which the user seeks", async () => {
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: FRAMES });
    const making = { 'content-type': 'video/webm', images, fps: 1 };
    const { vsid = '' } = await post(`/api/remotes/${sid}/videos`, making);
    expect((await waitForEnd(connectClient(stack), vsid)).state).toBe('succeeded');
    const go = join(sshd.home, 'go');
    const command = `echo begun; while ! test -e '${go}'; do sleep 0.1; done; seq 1 3000`;
    const { id: job = '', location } = await post('/api/remotes/launch', { sid, command });
    expect(location).toBe(`/api/jobs/${job}`);

    const answers: { range: string | undefined; status: number }[] = [];
    page.on('response', response => {
      if (!response.url().includes('/videos/')) return;
      answers.push({ range: response.request().headers().range, status: response.status() });
    });
    const video = `/api/remotes/${sid}/videos/${vsid}`;
    await run(`${script}\nwindow.events = events;`, { job, video });
    const shown = () => page.locator('pre').textContent();
    await waitFor(async () => (await shown()) === 'begun\n', { what: 'the first line' });
    writeFileSync(go, '');
    await waitFor(() => page.evaluate('events.readyState === EventSource.CLOSED'), {
      what: 'the end of the events',
    });
    const lines = Array.from({ length: 3_000 }, (_, i) => `${i + 1}\n`);
    expect(await shown()).toBe(`begun\n${lines.join('')}`);

    const seeked = await page.evaluate(`new Promise((resolve, reject) => {
      const video = document.querySelector('video');
      video.onerror = () => reject(new Error(video.error.message));
      video.onseeked = () => resolve([video.currentTime, video.duration, video.videoWidth]);
      const seek = () => { video.currentTime = 15.5; };
      if (video.readyState > 0) seek();
      else video.onloadedmetadata = seek;
    })`);
    expect(seeked).toEqual([15.5, FRAMES, 64]);
    expect(answers).toContainEqual({ range: expect.stringMatching(/^bytes=\d+-/), status: 206 });
    expect(answers.filter(({ status }) => status !== 206)).toEqual([]);
  });

  test('a page of an origin that is not listed reads nothing, and makes no link', async () => {
    const other = await browser.newPage();
    // The service's page itself is of another origin than `localhost`, for CORS.
    await other.goto(`${stack.url.replace('127.0.0.1', 'localhost')}/healthz`);
    const told = await other.evaluate(`Promise.all(['GET', 'POST'].map(method =>
      fetch('${stack.url}/api/' + (method === 'GET' ? 'users/-' : 'links'), {
        method,
        headers: { Authorization: 'Bearer ${token}', 'Content-Type': 'application/json' },
        ...(method === 'POST' ? { body: '{"path": "/api/jobs"}' } : {}),
      }).then(answer => answer.status, error => error.name)))`);
    expect(told).toEqual(['TypeError', 'TypeError']);
  });
});
