import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { Client } from '../../servers/api-client.ts';
import { expectNoFrame } from '../harness/clients/no-frame.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { type Job, launchAsync, openSession } from '../harness/hosts/remote.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack, useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** More than the workers have asked the queue for when they are stopped. */
const JOBS = 8;

interface Board {
  queues: {
    name: string;
    counts: Record<string, number>;
    jobs: { id: string }[];
    isPaused: boolean;
  }[];
}

const readBoard = async (client: Client): Promise<Board['queues'][number]> => {
  const { queues } = await client.get<Board>(
    '/admin/queues/api/queues?activeQueue=remote&status=waiting&page=1&jobsPerPage=10',
  );
  const remote = queues.find(({ name }) => name === 'remote');
  if (!remote) throw new Error('the board shows no queue "remote"');
  return remote;
};

describeStack(missingPrograms('sshd', 'chromium'), 'Bull Board', form => {
  const { stack, client, sshd } = useRemoteStack(form, { alone: 'stops its workers' });
  let browser: Browser;
  let jobs: Job[];

  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: findProgram('chromium'),
      args: ['--no-sandbox'],
    });
    const sid = await openSession(client, sshd);
    // An entry that waits is one that no worker has asked for yet.
    stack.kill('windlass-worker', 'SIGSTOP');
    // However long the launches take: only to the slots of workers that are alive are entries given.
    const database = openStackDatabase(stack);
    await database`update workers set seen = 'infinity'`;
    await database.end();
    jobs = await Promise.all(
      Array.from({ length: JOBS }, () => launchAsync(client, sid, 'exec sleep 600')),
    );
  });
  afterAll(async () => {
    stack.kill('windlass-worker', 'SIGCONT');
    await browser?.close();
  });

  /** A page that reaches this service and nothing else; whatever it tried besides, or was refused, is told. */
  async function openPage(): Promise<{ page: Page; context: BrowserContext; troubles: string[] }> {
    const troubles: string[] = [];
    const context = await browser.newContext({
      httpCredentials: { username: stack.username, password: stack.password },
    });
    await context.route('**', route => {
      const url = route.request().url();
      if (url.startsWith(`${stack.url}/`)) return route.continue();
      troubles.push(`asked for ${url}`);
      return route.abort();
    });
    const page = await context.newPage();
    page.on('console', line => {
      if (line.type() === 'error') troubles.push(line.text());
    });
    page.on('pageerror', error => troubles.push(error.message));
    return { page, context, troubles };
  }

  test('lists what waits, offline, and leads to its job', async () => {
    await waitFor(async () => (await readBoard(client)).jobs.length > 0, {
      what: 'an entry that waits',
    });
    const { page, context, troubles } = await openPage();
    await page.goto(`${stack.url}/admin/queues`);
    for (const queue of ['remote', 'video', 'parse'])
      await page.getByText(queue, { exact: true }).first().waitFor();

    await page.goto(`${stack.url}/admin/queues/queue/remote?status=waiting`);
    const [entry] = (await readBoard(client)).jobs;
    const id = entry?.id.replace(/-\d+$/, '') ?? '';
    expect(jobs.map(job => job.id)).toContain(id);
    await page
      .getByText(entry?.id ?? '', { exact: false })
      .first()
      .waitFor();
    const link = page.locator(`a[href="/api/jobs/${id}"]`).first();
    await link.waitFor();
    const target = new URL((await link.getAttribute('href')) ?? '', page.url());
    const job = await page.goto(target.href);
    expect(await job?.json()).toMatchObject({ id, kind: 'command', state: 'queued' });
    expect(troubles).toEqual([]);
    await context.close();
  });

  test('each of its pages can be opened directly', async () => {
    const { page, context, troubles } = await openPage();
    const { jobs: waiting } = await readBoard(client);
    for (const path of [
      '',
      '/',
      '/queue/parse',
      `/queue/remote/${waiting[0]?.id}?status=waiting`,
    ]) {
      const answer = await page.goto(`${stack.url}/admin/queues${path}`);
      expect([path, answer?.status()]).toEqual([path, 200]);
      await page.getByText('remote', { exact: true }).first().waitFor();
    }
    expect(troubles).toEqual([]);
    await context.close();
  });

  test('answers server administrators alone', async () => {
    await client.post('/api/users', { username: 'plain', password: 'long enough' });
    const plain = new Client(stack.url, 'plain', 'long enough');
    const script = /static\/js\/main[\w.]+js/.exec(
      await (await client.fetch('/admin/queues')).text(),
    )?.[0];
    for (const path of ['', '/', `/${script}`, '/api/queues', '/api/redis/stats', '/nowhere']) {
      await expectProblem(await fetch(`${stack.url}/admin/queues${path}`), 401, 'unauthorized');
      await expectProblem(await plain.fetch(`/admin/queues${path}`), 403, 'forbidden');
    }
    const page = await client.fetch('/admin/queues');
    expect(page.headers.get('Content-Security-Policy')).toMatch(
      /^default-src 'none'; script-src 'self';/,
    );
    expect(page.headers.get('X-Powered-By')).toBeNull();
    expect(await page.text()).not.toMatch(/https?:|\son\w+=|<style|<script>/);
    expect((await client.fetch(`/admin/queues/${script}`)).status).toBe(200);
    expect((await client.fetch('/admin/queues/api/redis/stats')).status).toBe(200);
    await expectProblem(await client.fetch('/admin/queues/nowhere'), 404, 'not_found');
    await expectProblem(await client.fetch('/api/admin/queues'), 404, 'not_found');
  });

  test('is shown in no frame and sniffed for no type, whatever is asked for', async () => {
    const script = /static\/js\/main[\w.]+js/.exec(
      await (await client.fetch('/admin/queues')).text(),
    )?.[0];
    const asked: [path: string, status: number, headers?: Record<string, string>][] = [
      ['', 200],
      ['/queue/remote', 200],
      [`/${script}`, 200],
      [`/${script}`, 200, { Range: 'bytes=999999999-' }],
      ['/static', 404],
      ['/static/locales', 404],
      ['/static/images', 404],
      ['/static/images/logo.svg', 200],
      ['/api/queues', 200],
      ['/nowhere', 404],
    ];
    for (const [path, status, headers] of asked) {
      const answer = await client.fetch(`/admin/queues${path}`, { headers, redirect: 'manual' });
      expectNoFrame(answer, path);
      expect([path, answer.status]).toEqual([path, status]);
    }
  });

  test('changes nothing, whatever is sent', async () => {
    const [entry] = (await readBoard(client)).jobs;
    const attempts = [
      ['PUT', 'queues/pause'],
      ['PUT', 'queues/remote/pause'],
      ['PUT', 'queues/remote/empty'],
      ['PUT', 'queues/remote/obliterate', { force: true }],
      ['PUT', 'queues/remote/clean/waiting'],
      ['PUT', 'queues/remote/concurrency', { concurrency: 1 }],
      ['PUT', `queues/remote/${entry?.id}/clean`],
      ['POST', 'queues/remote/add', { name: 'job', data: { id: 'x', epoch: 1 } }],
      ['PATCH', `queues/remote/${entry?.id}/update-data`, { jobData: {} }],
      ['DELETE', 'queues/remote'],
    ] as const;
    for (const [method, path, body] of attempts) {
      const answer = await client.fetch(`/admin/queues/api/${path}`, {
        method,
        body: body && JSON.stringify(body),
      });
      expect(answer.headers.get('Allow')).toBe('GET, HEAD');
      await expectProblem(answer, 405, 'method_not_allowed');
    }
    const after = await readBoard(client);
    expect(after).toMatchObject({ isPaused: false, readOnlyMode: true, globalConcurrency: null });
    expect(after.jobs.map(({ id }) => id)).toContain(entry?.id);
  });
});

describeUnless(missingPrograms('redis-server'), 'Bull Board without its Redis', () => {
  const { stack, client } = useStack({ start: startStack }, { redis: true });

  const page = () => client.fetch('/admin/queues', { headers: { Accept: 'text/html' } });

  test('says that the queue is unreachable, and comes back with it', async () => {
    await stack.redis?.down();
    const [answer, shown] = await Promise.all([client.fetch('/admin/queues'), page()]);
    await expectProblem(answer, 503, 'unavailable');
    expect([shown.status, shown.headers.get('Content-Type')]).toEqual([
      503,
      'text/html; charset=utf-8',
    ]);
    expectNoFrame(shown);
    expect(await shown.text()).toContain('the queue cannot be reached');
    const ready = await client.fetch('/readyz');
    expect([ready.status, await ready.json()]).toMatchObject([
      200,
      {
        ready: true,
        checks: { database: null, objects: null, queue: expect.any(String), work: null },
        degraded: [expect.stringContaining('queue')],
      },
    ]);

    await stack.redis?.up();
    await waitFor(async () => (await page()).status === 200, {
      what: 'the page',
      timeoutMs: 30_000,
    });
    expect(await readBoard(client)).toMatchObject({ name: 'remote', isPaused: false });

    // Open now, and unreachable again: its requests are refused too.
    await stack.redis?.down();
    const refused = await client.fetch('/admin/queues/api/queues');
    expect(refused.headers.get('Retry-After')).toBe('5');
    await expectProblem(refused, 503, 'unavailable');
    await stack.redis?.up();
    await waitFor(async () => (await readBoard(client)).name, {
      what: 'the queues',
      timeoutMs: 30_000,
    });
    expect(stack.log()).not.toContain('ended and is restarted');
  });
});
