import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { senderOf } from '../harness/clients/sender.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'records, lists and jobs over HTTP', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const send = senderOf(client);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  test('ETag, 304, If-Match and 412 on records', async () => {
    const path = '/api/users/tagged';
    await client.post('/api/users', { username: 'tagged', password: 'long enough' });
    const first = await client.fetch(path);
    const tag = first.headers.get('ETag') ?? '';
    expect(tag).toMatch(/^"[^"]+"$/);
    for (const names of [tag, `"x", W/${tag}`, '*']) {
      const unchanged = await client.fetch(path, { headers: { 'If-None-Match': names } });
      expect([names, unchanged.status, await unchanged.text()]).toEqual([names, 304, '']);
      expect(unchanged.headers.get('ETag')).toBe(tag);
    }
    const other = await client.fetch(path, { headers: { 'If-None-Match': '"x"' } });
    expect([other.status, await other.json()]).toMatchObject([200, { username: 'tagged' }]);

    const put = (condition: string) =>
      send('PUT', path, { administrator: true }, { 'If-Match': condition });
    for (const wrong of ['"x"', `W/${tag}`])
      await expectProblem(await put(wrong), 412, 'precondition_failed');
    expect((await put(tag)).status).toBe(200);
    await expectProblem(await put(tag), 412, 'precondition_failed');
    const changed = await client.fetch(path, { headers: { 'If-None-Match': tag } });
    expect([changed.status, await changed.json()]).toMatchObject([200, { administrator: true }]);
    const remove = (condition: string) =>
      client.fetch(path, { method: 'DELETE', headers: { 'If-Match': condition } });
    await expectProblem(await remove(tag), 412, 'precondition_failed');
    expect((await remove(changed.headers.get('ETag') ?? '')).status).toBe(204);
    expect((await client.fetch(path)).status).toBe(404);

    for (const record of ['/api/hosts/host', `/api/remotes/${sid}`]) {
      const found = await client.fetch(record);
      const again = await client.fetch(record, {
        headers: { 'If-None-Match': found.headers.get('ETag') ?? '' },
      });
      expect([record, again.status]).toEqual([record, 304]);
    }
  });

  test('the tag of a host changes with it, and with what of it may be seen', async () => {
    const path = '/api/hosts/tagged';
    await client.post('/api/hosts', { name: 'tagged', keys: [sshd.hostKey] });
    await client.post('/api/users', { username: 'rising', password: 'long enough' });
    const rising = new Client(stack.url, 'rising', 'long enough');
    const tagFor = async (who: Client) => (await who.fetch(path)).headers.get('ETag') ?? '';
    const [all, some] = [await tagFor(client), await tagFor(rising)];
    await send('PUT', '/api/users/rising', { administrator: true });
    const seen = await rising.fetch(path, { headers: { 'If-None-Match': some } });
    expect([seen.status, await seen.json()]).toMatchObject([200, { address: 'tagged' }]);
    const put = () => send('PUT', path, { port: 2222 }, { 'If-Match': all });
    expect((await put()).status).toBe(200);
    await expectProblem(await put(), 412, 'precondition_failed');
    const changed = await client.fetch(path, { headers: { 'If-None-Match': all } });
    expect([changed.status, await changed.json()]).toMatchObject([200, { port: 2222 }]);
    await client.delete(path);
  });

  test('records that tell each reader something else have tags of their own', async () => {
    await client.post('/api/users', { username: 'owner', password: 'long enough' });
    const owner = new Client(stack.url, 'owner', 'long enough');
    const acl = { readers: [{ user: stack.username }] };
    const { id: pid } = await owner.post<{ id: string }>('/api/projects', { name: 'read', acl });
    const session = await openSession(owner, sshd);
    const { id } = await launchAsync(owner, session, 'echo secret');
    await waitForEnd(owner, id);
    for (const path of [`/api/projects/${pid}`, `/api/jobs/${id}`]) {
      const tag = (await owner.fetch(path)).headers.get('ETag') ?? '';
      const known = { 'If-None-Match': tag };
      expect([path, (await owner.fetch(path, { headers: known })).status]).toEqual([path, 304]);
      const seen = await client.fetch(path, { headers: known });
      expect([path, seen.status]).toEqual([path, 200]);
      expect(await seen.text()).not.toContain('secret');
    }
    const removed = await owner.fetch(`/api/projects/${pid}`, {
      method: 'DELETE',
      headers: {
        'If-Match': (await owner.fetch(`/api/projects/${pid}`)).headers.get('ETag') ?? '',
      },
    });
    expect(removed.status).toBe(204);
  });

  test('the tag of a session changes when a job in it has ended', async () => {
    const session = await openSession(client, sshd);
    const path = `/api/remotes/${session}`;
    const tags = async (known = '') => {
      const answer = await client.fetch(path, { headers: { 'If-None-Match': known } });
      return [answer.status, answer.headers.get('ETag') ?? ''] as const;
    };
    const [, before] = await tags();
    expect(await tags(before)).toEqual([304, before]);
    const { id } = await launchAsync(client, session, 'true');
    await waitForEnd(client, id);
    const [status, after] = await tags(before);
    expect([status, after]).toEqual([200, expect.not.stringContaining(before)]);
    expect(await tags(after)).toEqual([304, after]);
    await client.delete(path);
  });

  test('a session expires at no time in the past while its job is open, and its tag holds meanwhile', async () => {
    const session = await openSession(client, sshd);
    const path = `/api/remotes/${session}`;
    const { id } = await launchAsync(client, session, 'sleep 600');
    const sql = openStackDatabase(stack);
    await sql`update sessions set accessed = now() - interval '1 hour' where sid = ${session}`;
    await sql`update jobs set finished = finished - interval '1 hour' where session = ${session} and id <> ${id}`;
    await sql.end();
    const found = await client.fetch(path);
    const { expires } = (await found.json()) as { expires: string };
    expect(Date.parse(expires)).toBeGreaterThan(Date.now());
    const { items } = await client.get<{ items: { sid: string; expires: string }[] }>(
      '/api/remotes?limit=1000',
    );
    const listed = items.find(item => item.sid === session)?.expires ?? '';
    expect(Date.parse(listed)).toBeGreaterThanOrEqual(Date.parse(expires));
    const tag = found.headers.get('ETag') ?? '';
    // Two looks in a row may be in two minutes, three are not.
    const look = async (known: string) =>
      client.fetch(path, { headers: { 'If-None-Match': known } });
    const next = await look(tag);
    const known = next.headers.get('ETag') ?? '';
    expect([next.status, (await look(known)).status]).toContain(304);
    // An hour ago its tag was the same but for the time at which it expires.
    const earlier = tag.replace(/\+\w+"/, '+0"');
    expect(earlier).not.toBe(tag);
    const remove = (condition: string) =>
      client.fetch(path, { method: 'DELETE', headers: { 'If-Match': condition } });
    expect((await remove(earlier.replace('busy', '0'))).status).toBe(412);
    expect((await remove(earlier)).status).toBe(204);
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
  });

  test('lists go on after the last key, without gaps and repeats', async () => {
    const made = [];
    for (let i = 0; i < 5; i++) made.push((await launchAsync(client, sid, `echo ${i}`)).id);
    const walk = async (path: string, limit: number, key: string) => {
      const seen: string[] = [];
      let after = '';
      for (;;) {
        const { items, next } = await client.get<{
          items: Record<string, string>[];
          next: string | null;
        }>(`${path}?limit=${limit}${after}`);
        expect(items.length).toBeLessThanOrEqual(limit);
        seen.push(...items.map(item => item[key] ?? ''));
        if (next === null) return seen;
        expect(items).toHaveLength(limit);
        after = `&after=${encodeURIComponent(next)}`;
      }
    };
    const jobs = await walk('/api/jobs', 2, 'id');
    expect(jobs.slice(0, 5)).toEqual([...made].reverse());
    expect(new Set(jobs).size).toBe(jobs.length);
    expect(jobs).toEqual(await walk('/api/jobs', 100, 'id'));
    for (const username of ['list.b', 'list.a', 'list.c'])
      await client.post('/api/users', { username, password: 'long enough' });
    const users = await walk('/api/users', 1, 'username');
    expect(users.filter(name => name.startsWith('list.'))).toEqual(['list.a', 'list.b', 'list.c']);
    expect(await walk('/api/remotes', 1, 'sid')).toEqual([sid]);
    for (const id of made) await waitForEnd(client, id);
  });

  test('a list of jobs takes no more memory where what they were asked is big', async () => {
    const MADE = '0'.repeat(14);
    const mib = 1 << 20;
    const count = 200;
    const sql = openStackDatabase(stack);
    await sql`insert into jobs (id, kind, queue, owner, payload, state, finished)
      select ${MADE} || lpad(n::text, 12, '0'), 'video', 'video', ${stack.username},
        jsonb_build_object('images', repeat('/', ${mib})), 'failed', now()
      from generate_series(1, ${count}) n`;
    try {
      const before = Math.max(...apiPeaks());
      const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=1000');
      expect(items.filter(({ id }) => id.startsWith(MADE))).toHaveLength(count);
      expect(Math.max(...apiPeaks()) - before).toBeLessThan((count / 2) * mib);
    } finally {
      await sql`delete from jobs where starts_with(id, ${MADE})`;
      await sql.end();
    }
  });

  /** The most memory that each API process ever had, in bytes. */
  const apiPeaks = () =>
    stack
      .pids()
      .filter(({ name }) => name === 'windlass-api')
      .map(({ pid }) => {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) * 1_024;
      });

  test('output is read from any offset, and says when no more will come', async () => {
    const { id } = await launchAsync(
      client,
      sid,
      'printf abc; printf error >&2; while [ ! -e "$HOME/more" ]; do sleep 0.1; done; printf def',
    );
    const read = async (query: string) => {
      const response = await client.fetch(`/api/jobs/${id}/output?${query}`);
      const headers = ['Output-Complete', 'Content-Type', 'Cache-Control'];
      expect(response.status).toBe(200);
      return [await response.text(), ...headers.map(name => response.headers.get(name))];
    };
    const kind = ['application/octet-stream', 'no-store'];
    await waitFor(async () => (await read('offset=0'))[0] === 'abc', { what: 'the first output' });
    expect(await read('stream=stdout&offset=1')).toEqual(['bc', 'false', ...kind]);
    expect(await read('offset=3')).toEqual(['', 'false', ...kind]);
    await client.post('/api/remotes/launch', { sid, command: 'touch "$HOME/more"' });
    await waitForEnd(client, id);
    expect(await read('offset=0')).toEqual(['abcdef', 'true', ...kind]);
    expect(await read('offset=6')).toEqual(['', 'true', ...kind]);
    expect(await read('offset=9007199254740991')).toEqual(['', 'true', ...kind]);
    expect(await read('stream=stderr&offset=2')).toEqual(['ror', 'true', ...kind]);
    expect(await read('offset=1&limit=2')).toEqual(['bc', 'false', ...kind]);
    expect(await read('offset=-2')).toEqual(['ef', 'true', ...kind]);
    expect(await read('offset=-2&limit=1')).toEqual(['e', 'false', ...kind]);
    expect(await read('offset=-9007199254740991&limit=6')).toEqual(['abcdef', 'true', ...kind]);
    const head = await client.fetch(`/api/jobs/${id}/output?offset=-2`, { method: 'HEAD' });
    const place = ['Output-Offset', 'Output-Size', 'Content-Length'];
    expect(place.map(name => head.headers.get(name))).toEqual(['4', '6', '2']);
    for (const query of [
      'stream=stdin',
      'offset=--1',
      'limit=0',
      'offset=1.5',
      'offset=9007199254740992',
    ])
      await expectProblem(
        await client.fetch(`/api/jobs/${id}/output?${query}`),
        400,
        'invalid_input',
      );
  });

  test('HEAD is GET without the body', async () => {
    const { id } = await launchAsync(client, sid, 'printf 12345');
    await waitForEnd(client, id);
    const paths = ['/healthz', '/api/users/-', `/api/jobs/${id}`, `/api/jobs/${id}/output`];
    for (const path of paths) {
      const got = await client.fetch(path);
      const length = Buffer.byteLength(await got.text());
      const head = await client.fetch(path, { method: 'HEAD' });
      expect([path, head.status, await head.text()]).toEqual([path, got.status, '']);
      for (const name of ['Content-Type', 'ETag'])
        expect([path, name, head.headers.get(name)]).toEqual([path, name, got.headers.get(name)]);
      expect([path, head.headers.get('Content-Length')]).toEqual([path, String(length)]);
    }
    const running = await launchAsync(client, sid, 'sleep 30');
    const events = await client.fetch(`/api/jobs/${running.id}/events`, { method: 'HEAD' });
    expect(events.headers.get('Content-Type')).toContain('text/event-stream');
    expect(await events.text()).toBe('');
    await client.delete(`/api/jobs/${running.id}`);
    const missing = await client.fetch('/api/jobs/none', { method: 'HEAD' });
    expect([missing.status, missing.headers.get('X-Service-Message')]).toEqual([
      404,
      'Not found: there is no such job.',
    ]);
  });

  test('Prefer is applied and said to be, and 202 tells where to look', async () => {
    const launch = (command: string, prefer?: string) =>
      send('POST', '/api/remotes/launch', { sid, command }, prefer ? { Prefer: prefer } : {});
    const applied = (response: Response) => response.headers.get('Preference-Applied');
    for (const prefer of ['respond-async', 'respond-async, wait=5', 'handling=lenient, wait=0']) {
      const response = await launch('sleep 0.2', prefer);
      const { id } = (await response.json()) as Job;
      expect([prefer, response.status, response.headers.get('Location')]).toEqual([
        prefer,
        202,
        `/api/jobs/${id}`,
      ]);
      expect(applied(response)).toBe(prefer.startsWith('respond') ? 'respond-async' : 'wait=0');
      await waitForEnd(client, id);
    }
    const waited = await launch('echo soon', 'wait=30');
    expect([waited.status, applied(waited)]).toEqual([200, 'wait=30']);
    const plain = await launch('echo now', 'depth-noroot');
    expect([plain.status, applied(plain)]).toEqual([200, null]);

    const { id } = await launchAsync(client, sid, 'sleep 1');
    await client.fetch(`/api/jobs/${id}/events`).then(response => response.text());
    const polled = await client.fetch(`/api/jobs/${id}`, { headers: { Prefer: 'wait=20' } });
    expect(await polled.json()).toMatchObject({ state: 'succeeded' });
  });

  test('a job that was cancelled, has ended or has no bytes is a conflict, or not found', async () => {
    const { id } = await launchAsync(client, sid, 'sleep 60');
    const early = await client.fetch(`/api/jobs/${id}/result`);
    await expectProblem(early, 409, 'conflict');
    expect(early.headers.get('Retry-After')).toBe('1');
    await expectProblem(await send('POST', `/api/jobs/${id}/retry`), 409, 'conflict');
    const launched = send('POST', '/api/remotes/launch', { sid, command: 'echo on; sleep 60' });
    const held = await findJob(job => job.state === 'running' && job.id !== id);
    await client.delete(`/api/jobs/${id}`);
    await client.delete(`/api/jobs/${held.id}`);
    const answer = await launched;
    await expectProblem(answer, 409, 'cancelled');
    expect(answer.headers.get('Location')).toBe(`/api/jobs/${held.id}`);
    await waitForEnd(client, id);
    await expectProblem(
      await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' }),
      409,
      'conflict',
    );
    await expectProblem(await client.fetch(`/api/jobs/${id}/result`), 404, 'not_found');
    await expectNoEvent(id, 'nonsense');
  });

  test('a job that ends while its cancellation is under way is refused by its new state', async () => {
    const id = newId();
    const [holder, watcher] = [openStackDatabase(stack), openStackDatabase(stack)];
    try {
      const { id: other } = await launchAsync(client, sid, 'true');
      await waitForEnd(client, other);
      await watcher`insert into jobs (id, kind, queue, owner, payload, state, not_before)
        select ${id}, kind, queue, owner, '{}', 'queued', now() + interval '1 hour' from jobs where id = ${other}`;
      const answer = await holder.begin(async tx => {
        await tx`update jobs set state = 'succeeded', finished = now() where id = ${id}`;
        const asked = client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
        await waitFor(
          async () => {
            const waiting = await watcher`select 1 from pg_stat_activity
              where wait_event_type = 'Lock' and query like 'select%"cancel_requested"%for update%'`;
            return waiting.length > 0;
          },
          { what: 'the cancellation to wait for the row' },
        );
        return { asked };
      });
      const { detail } = await expectProblem(await answer.asked, 409, 'conflict');
      expect(detail).toContain('the job has ended: succeeded.');
    } finally {
      await Promise.all([holder.end(), watcher.end()]);
    }
  });

  const expectNoEvent = async (id: string, lastEvent: string) => {
    const path = `/api/jobs/${id}/events`;
    const answer = await client.fetch(path, { headers: { 'Last-Event-ID': lastEvent } });
    const { fields } = await expectProblem(answer, 400, 'invalid_input');
    expect(fields).toEqual([
      { field: 'Last-Event-ID', problem: 'must be the id of an event of this job' },
    ]);
  };

  test('an event that a job never had is refused, so that nobody misses what is to come', async () => {
    const { id } = await launchAsync(client, sid, 'echo begun; sleep 600');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    for (const lastEvent of ['7-0', '0-1', '6-0-end', '0-0-end'])
      await expectNoEvent(id, lastEvent);
    await client.delete(`/api/jobs/${id}`);
    await waitForEnd(client, id);
    for (const lastEvent of ['7-0', '5-0-end', '6-1-end']) await expectNoEvent(id, lastEvent);
    const headers = { 'Last-Event-ID': '6-0-end' };
    expect((await client.fetch(`/api/jobs/${id}/events`, { headers })).status).toBe(204);
  });

  const findJob = (which: (job: Job) => boolean) =>
    waitFor(
      async () => {
        const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=5');
        return items.find(which);
      },
      { what: 'the job' },
    );

  test('a session is opened with an encrypted private key', async () => {
    const directory = makeTempDir('key');
    const path = join(directory.path, 'key');
    writeFileSync(path, `${sshd.privateKey.trim()}\n`, { mode: 0o600 });
    execFileSync('ssh-keygen', ['-q', '-p', '-f', path, '-P', '', '-N', 'a secret', '-a', '1']);
    const privateKey = readFileSync(path, 'utf8');
    directory.remove();
    const open = (passphrase?: string) =>
      send('POST', '/api/remotes', {
        hostname: 'host',
        username: sshd.username,
        privateKey,
        passphrase,
      });
    for (const wrong of ['another', undefined]) {
      const problem = await expectProblem(await open(wrong), 400, 'invalid_input');
      expect(problem.fields?.map(({ field }) => field)).toEqual(['privateKey']);
    }
    const opened = await open('a secret');
    expect(opened.status).toBe(200);
    const session = ((await opened.json()) as { sid: string }).sid;
    const launched = await send('POST', '/api/remotes/launch', {
      sid: session,
      command: 'echo in',
    });
    expect(await launched.json()).toMatchObject({ output: 'in\n' });
  });

  test('a user who is removed meanwhile opens no session', async () => {
    const username = `leaving-${form.name}`;
    await client.post('/api/users', { username, password: 'long enough' });
    const leaving = new Client(stack.url, username, 'long enough');
    await leaving.get('/api/users/-');
    const sql = openStackDatabase(stack);
    const watch = openStackDatabase(stack);
    let opening: Promise<Response> | undefined;
    await sql.begin(async tx => {
      await tx`delete from users where username = ${username}`;
      opening = leaving.fetch('/api/remotes', {
        method: 'POST',
        body: JSON.stringify({
          hostname: 'host',
          username: sshd.username,
          privateKey: sshd.privateKey,
        }),
      });
      await waitFor(
        async () => {
          // What goes on is read once a transaction: from outside.
          const [row] = await watch`select count(*)::int as n from pg_stat_activity
            where wait_event_type = 'Lock' and query like '%users%'`;
          return row?.n > 0;
        },
        { what: 'the request to wait for the removal' },
      );
    });
    if (!opening) throw new Error('nothing was sent');
    await expectProblem(await opening, 401, 'unauthorized');
    const [left] = await sql`select count(*)::int as n from sessions where owner = ${username}`;
    await Promise.all([sql.end(), watch.end()]);
    expect(left?.n).toBe(0);
  });

  test('retry makes a new job, linked to the old; a connect cannot be repeated', async () => {
    const { id } = await launchAsync(client, sid, 'echo again');
    await waitForEnd(client, id);
    const response = await send('POST', `/api/jobs/${id}/retry`);
    const job = (await response.json()) as Job & { retryOf: string };
    expect([response.status, response.headers.get('Location'), job.retryOf]).toEqual([
      202,
      `/api/jobs/${job.id}`,
      id,
    ]);
    expect((await waitForEnd(client, job.id)).state).toBe('succeeded');
    const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=1000');
    const connect = items.find(({ kind }) => kind === 'connect');
    await expectProblem(await send('POST', `/api/jobs/${connect?.id}/retry`), 409, 'conflict');
  });
});
