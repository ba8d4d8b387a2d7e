import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { bundleForPage } from '../harness/browser/page-script.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { addHost, connectClient } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';

const CLIENT = fileURLToPath(new URL('../../clients/typescript/src/index.ts', import.meta.url));

describeUnless(
  missingPrograms('sshd', 'chromium'),
  '@windlass/client in a page of another origin',
  () => {
    const app = createServer((req, res) => {
      // As another server would, that wants to be told what the page sends.
      if (req.method === 'POST')
        return void res.writeHead(307, { Location: `${stack.url}${req.url}` }).end();
      res.setHeader('Content-Type', 'text/html').end('<!doctype html>');
    });
    let stack: Stack;
    let sshd: TestSshd;
    let origin: string;

    beforeAll(async () => {
      await once(app.listen(0, '127.0.0.1'), 'listening');
      origin = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
      [stack, sshd] = await Promise.all([
        startStack({ workers: 1, env: { ALLOWED_ORIGINS: origin } }),
        startTestSshd(),
      ]);
    });
    afterAll(async () => {
      app.close();
      await Promise.all([stack?.stop(), sshd?.stop()]);
    });

    test('runs a command, uploads and waits with a token, over connections that are cut', async () => {
      const client = connectClient(stack);
      await addHost(client, sshd);
      const { mid } = await makeModel(client);
      const asked = { name: 'of the page', scope: 'write' };
      const { token } = await client.post<{ token: string }>('/api/users/-/tokens', asked);
      const { hostname, port } = new URL(stack.url);
      const link = await startTcpProxy({ host: hostname, port: Number(port) });
      const executablePath = findProgram('chromium');
      const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
      try {
        const page = await browser.newPage();
        await page.goto(origin);
        await page.addScriptTag({ content: await bundleForPage(CLIENT, 'windlassClient') });
        await page.exposeFunction('cut', () => link.cut());
        const { username, privateKey } = sshd;
        const given = { url: `http://127.0.0.1:${link.port}`, token, mid, username, privateKey };
        const told = await page.evaluate(`(async () => {
          const { url, token, mid, username, privateKey } = ${JSON.stringify(given)};
          const windlass = new windlassClient.Windlass({ url, token });
          const session = await windlass.open('host', { username, privateKey });
          const run = session.run('for n in 1 2 3 4 5; do echo $n; sleep 0.3; done');
          const lines = [];
          for await (const { text } of run) {
            lines.push(text);
            if (text === '2') await cut();
          }
          const { returncode, output } = await run.wait();
          const table = new File(['a,b\\n1,2\\n'], 'table');
          const { state } = await windlass.upload(table, { mid, parser: 'csv' });
          const rows = [];
          for await (const row of windlass.rows(mid, 'table', { sort: 'a' })) rows.push(row);
          const refused = await windlass.wait('none').catch(({ code, requestId }) => ({ code, requestId }));
          await session.close();
          const led = await new windlassClient.Windlass({ url: location.origin, token })
            .open('host', { username, password: 'secret' })
            .catch(({ code, detail }) => ({ code, detail }));
          return { lines, returncode, output, state, rows, refused, led };
        })()`);
        expect(told).toEqual({
          lines: ['1', '2', '3', '4', '5'],
          returncode: 0,
          output: '1\n2\n3\n4\n5\n',
          state: 'succeeded',
          rows: [{ a: 1, b: 2 }],
          led: {
            code: 'foreign_answer',
            detail: `What answers at ${origin} is not Windlass. It says to ask another address instead.`,
          },
          refused: { code: 'not_found', requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
        });
      } finally {
        await browser.close();
        await link.stop();
      }
    });
  },
);
