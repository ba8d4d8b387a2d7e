import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { parse, utf8 } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd', 'ffmpeg'), 'a job whose record is removed', form => {
  const { stack, client, sshd, proxy } = useProxiedStack(form);
  let sql: postgres.Sql;
  let sid: string;

  /** A job that is old when the other tests begin. */
  let old: string;

  beforeAll(async () => {
    sql = openStackDatabase(stack);
    sid = await openSession(client, sshd);
    old = (await run('true')).id;
    await sql`update jobs set finished = now() - interval '31 days' where id = ${old}`;
  });
  afterAll(() => sql?.end());

  const send = (method: string, path: string, headers: Record<string, string> = {}) =>
    client.fetch(path, { method, headers });
  const remove = (id: string, headers = {}) => send('DELETE', `/api/jobs/${id}/record`, headers);
  const run = async (command: string) => {
    const { id } = await launchAsync(client, sid, command);
    return waitForEnd(client, id);
  };
  const objectsOf = (id: string, kind = 'output') => {
    const folder = join(stack.dataDir, 'objects/objects', kind, id);
    return existsSync(folder) ? readdirSync(folder) : [];
  };

  test('leaves no row and, soon, no byte of its output', async () => {
    const { id } = await run('head -c 9000000 /dev/zero; echo end >&2');
    expect(objectsOf(id).length).toBeGreaterThan(0);
    const events = await client.fetch(`/api/jobs/${id}/events`, {
      headers: { 'Last-Event-ID': '9000000-4' },
    });
    await events.text();
    expect((await remove(id)).status).toBe(204);
    const [left] = await sql`select (select count(*) from jobs where id = ${id})
      + (select count(*) from job_chunks where job = ${id})
      + (select count(*) from job_segments where job = ${id}) as rows`;
    expect(Number(left?.rows)).toBe(0);
    await waitFor(() => objectsOf(id).length === 0, {
      what: 'its objects to go',
      timeoutMs: 60_000,
    });
    const { items } = await client.get<{ items: { id: string }[] }>('/api/jobs?limit=1000');
    expect(items.map(job => job.id)).not.toContain(id);
  });

  test('ends a stream whose output goes while it is read, so that it does not look complete', async () => {
    const { id } = await run('echo some');
    // The output goes in the same transaction as the record: a reader may have read that before.
    await sql`delete from job_chunks where job = ${id}`;
    for (const path of ['events', 'output']) {
      const read = client.fetch(`/api/jobs/${id}/${path}`).then(answer => answer.text());
      await expect(read).rejects.toThrow(/fetch failed|terminated/);
    }
  });

  test('is one of two that both saw it, and the other is told', async () => {
    const { id } = await run('true');
    const tag = (await client.fetch(`/api/jobs/${id}`)).headers.get('ETag') ?? '';
    await expectProblem(await remove(id, { 'If-Match': '"0"' }), 412, 'precondition_failed');
    const answers = await whileLocked(
      stack,
      locking => locking`select 1 from jobs where id = ${id} for update`,
      () => [remove(id, { 'If-Match': tag }), remove(id, { 'If-Match': tag })],
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404]);
  });

  test('does not run again for a request that repeats its Idempotency-Key', async () => {
    const ran = join(sshd.home, 'ran');
    const launch = () =>
      client.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, command: `echo x >> ${ran}` }),
        headers: { 'Idempotency-Key': 'removed' },
      });
    const first = (await (await launch()).json()) as { job: string };
    expect((await remove(first.job)).status).toBe(204);
    const { hint } = await expectProblem(await launch(), 409, 'idempotency_conflict');
    expect(hint).toMatch(/new key/);
    expect((await run(`wc -l < ${ran}`)).state).toBe('succeeded');
    const [row] =
      await sql`select count(*)::int as n from jobs where payload ->> 'command' = ${`echo x >> ${ran}`}`;
    expect(row?.n).toBe(0);
  });

  test('leaves its session open for as long as the end of the job did', async () => {
    const own = await openSession(client, sshd);
    const { id } = await launchAsync(client, own, 'true');
    await waitForEnd(client, id);
    await sql`update sessions set accessed = now() - interval '20 minutes' where sid = ${own}`;
    const before = await client.get<{ expires: string }>(`/api/remotes/${own}`);
    // Its connect is a job of the session too, which ended a little earlier.
    await sql`update jobs set finished = finished - interval '1 hour' where session = ${own} and kind = 'connect'`;
    expect((await remove(id)).status).toBe(204);
    const after = await client.get<{ expires: string }>(`/api/remotes/${own}`);
    expect(after.expires).toBe(before.expires);
  });

  test('leaves what it made for a project: artifacts, how they were parsed, a video in the cache', async () => {
    const { pid, mid } = await makeModel(client);
    const good = await parse(client, { mid, parser: 'blob', files: { a: [utf8('bytes')] } });
    const bad = await parse(client, { mid, parser: 'csv', files: { t: [utf8('x,y\n1\n')] } });
    expect([good.state, bad.state]).toEqual(['succeeded', 'failed']);
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 3 });
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, {
      'content-type': 'video/mp4',
      images,
      project: pid,
      key: 'k',
    });
    expect((await waitForEnd(client, vsid)).state).toBe('succeeded');
    const look = async () => {
      const paths = [
        `/api/models/${mid}`,
        `/api/uploads/${good.uid}`,
        `/api/uploads/${bad.uid}`,
        '/api/uploads?limit=1000',
        `/api/models/${mid}/files/a`,
        `/api/projects/${pid}/cache/k`,
      ];
      const answers = await Promise.all(paths.map(path => client.fetch(path)));
      return Promise.all(
        answers.map(async answer => [
          answer.status,
          answer.headers.get('ETag'),
          await answer.text(),
        ]),
      );
    };
    const before = await look();
    for (const { id } of [good, bad, { id: vsid }]) expect((await remove(id)).status).toBe(204);
    expect(await look()).toEqual(before);
    expect((await send('GET', `/api/remotes/${sid}/videos/${vsid}/status`)).status).toBe(404);
    const [pending] = await sql`select count(*)::int as n from pending_deletions`;
    if (pending?.n)
      await waitFor(async () => (await sql`select 1 from pending_deletions`).length === 0, {
        what: 'the sweep of objects',
        timeoutMs: 30_000,
      });
    expect(await look()).toEqual(before);
    // The upload can still be given up, and the model forgets its parse.
    expect((await send('DELETE', `/api/uploads/${bad.uid}`)).status).toBe(204);
    const { parses } = await client.get<{ parses: unknown[] }>(`/api/models/${mid}`);
    expect(parses).toHaveLength(1);
  });

  test('is forgotten on its host too, once that is there again', async () => {
    const { id } = await launchAsync(client, sid, 'echo begun; exec sleep 600');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    const fence = join(sshd.home, '.windlass/started', id);
    proxy.blackhole();
    // As after half a day: nobody could say how it ended, and it may still run.
    await sql`update jobs set state = 'failed', finished = now(), lease_token = null, version = version + 1,
      error = ${sql.json({ code: 'outcome_unknown', detail: 'Its host was unreachable for too long.' })} where id = ${id}`;
    expect((await remove(id)).status).toBe(204);
    const [leftover] = await sql`select may_keep_running from leftover_runs where id = ${id}`;
    expect(leftover).toEqual({ may_keep_running: true });
    expect(existsSync(fence)).toBe(true);
    await client.delete(`/api/remotes/${sid}`);
    const [given] = await sql`select may_keep_running from leftover_runs where id = ${id}`;
    expect(given).toEqual({ may_keep_running: false });
    proxy.heal();
    await waitFor(
      async () => (await sql`select 1 from leftover_runs where id = ${id}`).length === 0,
      {
        what: 'the removal of its run',
        timeoutMs: 60_000,
      },
    );
    const [session] = await sql`select sealed is null as erased from sessions where sid = ${sid}`;
    expect(session).toBeDefined();
  });

  test('goes by itself, and is counted, once it is old', async () => {
    await waitFor(async () => (await send('GET', `/api/jobs/${old}`)).status === 404, {
      what: 'the old job to go',
      timeoutMs: 120_000,
    });
    await waitFor(
      async () => {
        const text = await (await client.fetch('/metrics')).text();
        return /^windlass_jobs_removed_total\{.*\} [1-9]/m.test(text);
      },
      { what: 'it to be counted' },
    );
  });
});
