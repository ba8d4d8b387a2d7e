import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { beforeAll, expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { expectProblem, type Problem } from '../harness/clients/problem.ts';
import { stackDatabaseUrl } from '../harness/databases/database.ts';
import { type Job, openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a request whose client left before the answer', form => {
  const { stack, client, sshd, proxy } = useProxiedStack(form);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  /** Sends it while the host says nothing, and leaves: its job ends with it. */
  async function leave(kind: string, send: (signal: AbortSignal) => Promise<Response>) {
    const list = async () => (await client.get<{ items: Job[] }>('/api/jobs?limit=100')).items;
    const before = (await list()).map(({ id }) => id);
    const find = async () =>
      (await list()).find(job => job.kind === kind && !before.includes(job.id));
    const left = new AbortController();
    proxy.blackhole();
    const sent = send(left.signal).catch(() => {});
    await waitFor(async () => (await find())?.state === 'running', {
      what: `the ${kind} to begin`,
    });
    left.abort();
    await sent;
    await waitFor(async () => (await find())?.state === 'cancelled', { what: 'its end' });
    proxy.heal();
  }

  const untilWaiting = (database: postgres.Sql, count: number) =>
    waitFor(
      async () => {
        const [row] = await database`select count(*)::int as n from pg_locks where not granted`;
        return row?.n >= count;
      },
      { what: `${count} that wait for a lock`, intervalMs: 20 },
    );

  /** A login that is sent under one key, and what can hold it up. */
  function useKeyedLogin() {
    const { username, privateKey } = sshd;
    const key = newId();
    const body = JSON.stringify({ hostname: 'host', username, privateKey });
    const database = postgres(stackDatabaseUrl(stack), { max: 4 });
    return {
      key,
      database,
      /** Its X-Request-Id is new, if not given. */
      open: (signal?: AbortSignal, id = newId()) =>
        client.fetch('/api/remotes', {
          method: 'POST',
          headers: { 'Idempotency-Key': key, 'X-Request-Id': id },
          body,
          signal,
        }),
      /** The request and the job that it started, once it runs; not of this request. */
      findRunning: async (not = '') => {
        const [row] =
          await database`select job, request_id as "requestId" from idempotency_keys join jobs on jobs.id = job
          where key = ${key} and state = 'running' and request_id <> ${not}`;
        return row as { job: string; requestId: string } | undefined;
      },
      /** Who waits for it finds the job of the one that has it. */
      lockKey: (tx: postgres.TransactionSql) =>
        tx`select pg_advisory_xact_lock(hashtextextended(${`${stack.username}\nPOST /remotes\n${key}`}, 0))`,
      untilWaiting: (count: number) => untilWaiting(database, count),
      async end() {
        proxy.heal();
        await database.end();
      },
    };
  }

  test('is done when it is sent again with its Idempotency-Key', async () => {
    const { username, privateKey } = sshd;
    const init = { method: 'POST', headers: { 'Idempotency-Key': 'once' } };
    const body = JSON.stringify({ hostname: 'host', username, privateKey });
    const open = (signal?: AbortSignal) => client.fetch('/api/remotes', { ...init, body, signal });
    await leave('connect', open);
    const other = JSON.stringify({ hostname: 'host', username, privateKey, agent: false });
    const mixedUp = await client.fetch('/api/remotes', { ...init, body: other });
    await expectProblem(mixedUp, 409, 'idempotency_conflict');
    const opened = await open();
    expect(opened.status).toBe(200);
    expect(await (await open()).json()).toEqual(await opened.json());

    const browse = (signal?: AbortSignal) =>
      client.fetch(`/api/remotes/${sid}/browse${sshd.home}`, { ...init, signal });
    await leave('browse', browse);
    expect((await browse()).status).toBe(200);
  });

  test('is not done again where its user has cancelled it', async () => {
    const { open, findRunning, end } = useKeyedLogin();
    proxy.blackhole();
    try {
      const first = open();
      const { job } = await waitFor(findRunning, { what: 'the login to begin' });
      const second = open();
      await client.delete(`/api/jobs/${job}`);
      const codeOf = async (response: Response) => ((await response.json()) as Problem).code;
      for (const sent of [first, second, open()])
        expect(await codeOf(await sent)).toBe('cancelled');
    } finally {
      await end();
    }
  });

  test('is done for the one that sent it first when its repeat leaves', async () => {
    const { open, database, findRunning, lockKey, untilWaiting, end } = useKeyedLogin();
    const left = new AbortController();
    proxy.blackhole();
    try {
      const first = open();
      await waitFor(findRunning, { what: 'the login to begin' });
      const repeat = await database.begin(async tx => {
        await lockKey(tx);
        const sent = open(left.signal).catch(() => {});
        await untilWaiting(1);
        return { sent };
      });
      // It has the key before this does, and joins the job.
      await database.begin(lockKey);
      left.abort();
      await repeat.sent;
      const another = open();
      proxy.heal();
      const answers = await Promise.all([await first, await another].map(each => each.json()));
      expect(answers[0]).toMatchObject({ sid: expect.any(String) });
      expect(answers[1]).toEqual(answers[0]);
    } finally {
      await end();
    }
  });

  test('is done for a client that had sent it again before the first one was seen to leave', async () => {
    const { open, database, findRunning, lockKey, untilWaiting, end } = useKeyedLogin();
    const left = new AbortController();
    proxy.blackhole();
    try {
      const first = open(left.signal).catch(() => {});
      const { job } = await waitFor(findRunning, { what: 'the login to begin' });
      const { second } = await database.begin(async tx => {
        await tx`select from jobs where id = ${job} for update`;
        left.abort();
        await first;
        await untilWaiting(1);
        const sent = await database.begin(async other => {
          await lockKey(other);
          const second = open();
          await untilWaiting(2);
          return { second };
        });
        // It has the key before this does, and joins the job, whose cancellation waits.
        await database.begin(lockKey);
        return sent;
      });
      await waitFor(async () => (await findRunning())?.job !== job, {
        what: 'the end of the first',
      });
      proxy.heal();
      expect((await second).status).toBe(200);
    } finally {
      await end();
    }
  });

  test('is done for the last of three that sent it, when the others are seen to leave one after the other', async () => {
    const { key, open, database, findRunning, lockKey, untilWaiting, end } = useKeyedLogin();
    const send = () => {
      const [id, left] = [newId(), new AbortController()];
      const answer = open(left.signal, id);
      answer.catch(() => {});
      return { id, left, answer };
    };
    const starterOf = async (not?: string) => {
      const what = `a login to begin after ${not ?? 'none'}`;
      const { requestId } = await waitFor(() => findRunning(not), { what, intervalMs: 20 });
      return requestId;
    };
    proxy.blackhole();
    try {
      const first = send();
      expect(await starterOf()).toBe(first.id);
      const repeats = await database.begin(async tx => {
        await lockKey(tx);
        const sent = [send(), send()];
        await untilWaiting(2);
        return sent;
      });
      // It has the key after them: both have joined the job.
      await database.begin(lockKey);
      first.left.abort();
      const starter = await starterOf(first.id);
      // The other one joins that job, as soon as it has the key.
      const joined = async () => {
        const [row] =
          await database`select count(*)::int as n from jobs join idempotency_keys k on k.job = jobs.id
          where k.key = ${key} and jobs.started < now() - interval '1 second'`;
        return row?.n === 1;
      };
      await waitFor(joined, { what: 'the other one to join', intervalMs: 50 });
      repeats.find(({ id }) => id === starter)?.left.abort();
      const last = repeats.find(({ id }) => id !== starter);
      expect(await starterOf(starter)).toBe(last?.id);
      proxy.heal();
      expect((await last?.answer)?.status).toBe(200);
    } finally {
      await end();
    }
  });

  /** Sends a change of a file under a new key, and has its host make it: the host's answer waits for proxy.heal(). */
  async function changeFile(method: 'PUT' | 'DELETE', path: string, database: postgres.Sql) {
    const headers = {
      'Idempotency-Key': newId(),
      ...(method === 'PUT' ? { 'If-None-Match': '*' } : {}),
    };
    const body = method === 'PUT' ? 'new' : undefined;
    const send = (signal?: AbortSignal) =>
      client.fetch(`/api/remotes/${sid}/file${path}`, { method, headers, body, signal });
    const existed = existsSync(path);
    const left = new AbortController();
    proxy.blackhole();
    const sent = send(left.signal).catch(() => {});
    const findJob = async () => {
      const [row] = await database<{ job: string }[]>`
        select job from idempotency_keys join jobs on jobs.id = job
        where key = ${headers['Idempotency-Key']} and state = 'running'`;
      return row?.job;
    };
    const job = await waitFor(findJob, { what: 'its job to begin', intervalMs: 20 });
    await database.begin(async tx => {
      await tx`select from jobs where id = ${job} for update`;
      proxy.heal();
      // With the record of what it is about to do.
      await untilWaiting(database, 1);
      proxy.blackhole('down');
    });
    // A removal needs more answers of the host than its last: it is made for the host.
    if (method === 'DELETE') rmSync(path);
    await waitFor(() => existsSync(path) !== existed, { what: 'the change of the file' });
    const leave = async () => {
      left.abort();
      await sent;
    };
    const untilEnded = (state: string) =>
      waitFor(
        async () => (await database`select from jobs where id = ${job} and state = ${state}`)[0],
        { what: `a job that is ${state}` },
      );
    const untilReleased = () =>
      waitFor(
        async () =>
          (
            await database`
            select from jobs where id = ${job} and cancel_requested is not null and not_before > now()`
          )[0],
        { what: 'a job that waits for its host', timeoutMs: 45_000, intervalMs: 20 },
      );
    return { job, send, leave, untilEnded, untilReleased };
  }

  test.each([
    ['PUT', 201],
    ['DELETE', 204],
  ] as const)(
    'is answered by what its first %s did, whose answer the host gave too late',
    async (method, status) => {
      const path = join(sshd.home, `changed by ${method}`);
      if (method === 'DELETE') writeFileSync(path, 'old');
      const database = postgres(stackDatabaseUrl(stack), { max: 4 });
      try {
        const { send, leave, untilEnded, untilReleased } = await changeFile(method, path, database);
        await leave();
        // A cancelled write waits for its host, to remove what it left there.
        if (method === 'PUT') {
          await untilReleased();
          proxy.heal();
        }
        await untilEnded('cancelled');
        proxy.heal();
        expect((await send()).status).toBe(status);
        const [repeat] = await database`select id from jobs order by created desc limit 1`;
        const { items } = await client.get<{ items: { event: string }[] }>(
          `/api/jobs/${repeat?.id}/history`,
        );
        expect(items[0]?.event).toBe('queued');
      } finally {
        proxy.heal();
        await database.end();
      }
    },
  );

  test('is answered by the file that its first PUT wrote when its cancellation comes before its end', async () => {
    const database = postgres(stackDatabaseUrl(stack), { max: 4 });
    try {
      const path = join(sshd.home, 'written');
      const { job, send, leave, untilEnded } = await changeFile('PUT', path, database);
      await database.begin(async tx => {
        await tx`select from jobs where id = ${job} for update`;
        await leave();
        await untilWaiting(database, 1);
        proxy.heal();
        // After the cancellation.
        await untilWaiting(database, 2);
      });
      await untilEnded('succeeded');
      expect((await send()).status).toBe(201);
    } finally {
      proxy.heal();
      await database.end();
    }
  });
});
