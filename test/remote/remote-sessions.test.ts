import { closeSync, openSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signalProcess } from '../../servers/processes.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import {
  isEnded,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { WORKERS_APART } from '../harness/stacks/stack.ts';
import { useProxiedStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** More than is on its way in all buffers between a host and a client that does not read. */
const LARGE = 5_000_000_000;

/** What a cancel may take; a silent link is given up much later. */
const LEFT_MS = 8_000;

describeStack(missingPrograms('sshd'), 'remote sessions', form => {
  const { stack, client, sshd, proxy } = useProxiedStack(
    form,
    form.name === 'fleet' ? { env: WORKERS_APART } : {},
  );
  let sql: postgres.Sql;
  beforeAll(() => {
    sql = openStackDatabase(stack);
  });
  afterAll(() => sql?.end());

  const login = () => ({
    hostname: 'host',
    username: sshd.username,
    privateKey: sshd.privateKey,
  });
  const findJob = (kind: string) =>
    waitFor(
      async () => {
        const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=100');
        return items.find(job => job.kind === kind && job.state === 'running');
      },
      { what: `a ${kind} at work`, timeoutMs: 20_000 },
    );
  const readFile = async (sid: string, path: string) => {
    const answer = await client.fetch(`/api/remotes/${sid}/file${encodeURI(path)}`);
    expect(answer.status).toBe(200);
    return answer.text();
  };
  const isSealed = async (sid: string) => {
    const rows = await sql`select 1 from sessions where sid = ${sid} and sealed is not null`;
    return rows.length === 1;
  };

  for (const agent of [true, false]) {
    test(`a file is read whatever its name is made of, ${agent ? 'with' : 'without'} an agent`, async () => {
      const sid = await openSession(client, sshd, { agent });
      const names = [
        `it's "quoted" \`id\` $(id) $HOME`,
        'back\\slash & more; | < > * ? [a] {b} ~ ! #',
        '-n -rf',
        'ä 日本 😀',
        'two\nlines\t\u007f',
        '100%41+1=?',
        ' spaces ',
      ];
      for (const name of names) {
        writeFileSync(join(sshd.home, name), `this is ${name}`);
        const path = join(sshd.home, name).split('/').map(encodeURIComponent).join('/');
        const answer = await client.fetch(`/api/remotes/${sid}/file${path}`);
        expect([name, answer.status]).toEqual([name, 200]);
        expect(await answer.text()).toBe(`this is ${name}`);
      }
    });
  }

  test('a client that leaves cancels what it waited for', async () => {
    const sid = await openSession(client, sshd);
    const file = join(sshd.home, 'large');
    closeSync(openSync(file, 'w'));
    truncateSync(file, LARGE);
    const leave = async (kind: string, path: string, init: RequestInit) => {
      const leaving = new AbortController();
      const answer = client.fetch(path, { ...init, signal: leaving.signal });
      answer.catch(() => {});
      const { id } = await findJob(kind);
      leaving.abort();
      expect([kind, (await waitForEnd(client, id, LEFT_MS)).state]).toEqual([kind, 'cancelled']);
    };
    await leave('file', `/api/remotes/${sid}/file${file}`, {});
    // A host that says nothing must not keep it any longer, neither where it was asked before nor at the first time.
    const fresh = await openSession(client, sshd);
    proxy.blackhole();
    try {
      await leave('file', `/api/remotes/${sid}/file${file}`, {});
      await leave('file', `/api/remotes/${fresh}/file${file}`, {});
      await leave('browse', `/api/remotes/${sid}/browse${sshd.home}`, { method: 'POST' });
      await leave('connect', '/api/remotes', { method: 'POST', body: JSON.stringify(login()) });
    } finally {
      proxy.heal();
    }
    // A launch is none of them.
    const { id } = await launchAsync(client, sid, 'echo on');
    expect((await waitForEnd(client, id)).state).toBe('succeeded');
  });

  test('without a remote worker what waits for one is 503, and a launch is accepted', async () => {
    const sid = await openSession(client, sshd);
    const workers = form.name === 'embedded' ? 'windlass-worker' : 'windlass-worker-remote';
    const stopped = stack.kill(workers, 'SIGSTOP');
    let launched: Job;
    try {
      await sql`update workers set seen = now() - interval '31 seconds' where slots ? 'remote'`;
      const answers = await Promise.all([
        client.fetch('/api/remotes', { method: 'POST', body: JSON.stringify(login()) }),
        client.fetch(`/api/remotes/${sid}/browse${sshd.home}`, { method: 'POST' }),
        client.fetch(`/api/remotes/${sid}/file${sshd.home}/large`),
      ]);
      for (const answer of answers) {
        expect(answer.headers.get('Retry-After')).toMatch(/^[1-9]\d*$/);
        await expectProblem(answer, 503, 'unavailable');
      }
      launched = await launchAsync(client, sid, 'echo later');
    } finally {
      for (const pid of stopped) signalProcess(pid, 'SIGCONT');
    }
    expect((await waitForEnd(client, launched.id)).state).toBe('succeeded');
    expect(String(await readOutput(client, launched.id))).toBe('later\n');
  });

  test('the credential of a session that was ended is erased', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'sleep 600');
    await waitFor(async () => (await client.get<Job>(`/api/jobs/${id}`)).state === 'running', {
      what: 'the command to run',
    });
    expect(await isSealed(sid)).toBe(true);
    await client.delete(`/api/remotes/${sid}`);
    await waitFor(async () => !(await isSealed(sid)), {
      what: 'the credential to be erased',
      timeoutMs: 40_000,
    });
    expect(isEnded(await client.get<Job>(`/api/jobs/${id}`))).toBe(true);
  });

  test('where its host is unreachable the credential is kept to clean up there, for ten minutes', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'echo begun; sleep 600');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    proxy.refuse();
    try {
      await client.delete(`/api/remotes/${sid}`);
      await sql`update sessions set ended = now() - interval '9 minutes' where sid = ${sid}`;
      // One that can be cleaned up is erased by a round that looks at both.
      const other = await sql<{ sid: string }[]>`
        insert into sessions (sid, owner, hostname, username, agent, sealed, opened, ended)
        select sid || 'x', owner, hostname, username, agent, sealed, opened, now()
        from sessions where sid = ${sid} returning sid`;
      await waitFor(async () => !(await isSealed(other[0]?.sid ?? '')), {
        what: 'a round of upkeep',
        timeoutMs: 20_000,
      });
      expect(await isSealed(sid)).toBe(true);
      await sql`update sessions set ended = now() - interval '11 minutes' where sid = ${sid}`;
      await waitFor(async () => !(await isSealed(sid)), {
        what: 'the credential to be erased',
        timeoutMs: 20_000,
      });
    } finally {
      proxy.heal();
    }
  });

  test('what was read of a host is kept for an hour', async () => {
    const sid = await openSession(client, sshd);
    const bytes = 'x'.repeat(5_000_000);
    writeFileSync(join(sshd.home, 'read'), bytes);
    const stored = async (id: string) => {
      const [row] = await sql<{ bytes: string }[]>`
        select (select coalesce(sum(length(bytes)), 0) from job_chunks where job = ${id})
          + (select coalesce(sum(length), 0) from job_segments where job = ${id}) as bytes`;
      return Number(row?.bytes);
    };
    const ids: string[] = [];
    for (let n = 0; n < 2; n++) {
      expect(await readFile(sid, join(sshd.home, 'read'))).toBe(bytes);
      const [job] = await sql<{ id: string }[]>`
        select id from jobs where session = ${sid} and kind = 'file' order by created desc limit 1`;
      ids.push(job?.id ?? '');
    }
    const [old = '', young = ''] = ids;
    expect(await stored(old)).toBeGreaterThan(bytes.length);
    await sql`update jobs set finished = now() - interval '61 minutes' where id = ${old}`;
    await sql`update jobs set finished = now() - interval '59 minutes' where id = ${young}`;
    // It is looked for every five minutes, and by a worker that has just begun.
    stack.kill(form.name === 'embedded' ? 'windlass-worker' : 'windlass-worker-upkeep');
    await waitFor(async () => (await stored(old)) === 0, {
      what: 'what was passed on to go',
      timeoutMs: 30_000,
    });
    expect(await stored(young)).toBeGreaterThan(bytes.length);
  });
});
