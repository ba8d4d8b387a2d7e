import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { type Job, launchAsync, openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const QUEUED = 100_000;
/** The slots of each of two workers. */
const SLOTS = 8;
/** The slots of a user who has half: one in eight of all is never given to such a user. */
const GIVEN = 2 * SLOTS - 2;

/**
 * A user has 100,000 jobs queued, and commands of an hour in every slot that he may have. It is seen by states that another
 * one does not wait for him: none of his has ended when the other's have begun.
 */
describeStack(missingPrograms('sshd'), 'beside a user who queues without end', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    workers: 2,
    env: { REMOTE_SLOTS: String(SLOTS) },
    alone: 'fills the queues',
  });
  let database: postgres.Sql;
  let other: Client;
  let sid: string;

  const addUser = async (username: string) => {
    await client.post('/api/users', { username, password: 'long enough' });
    return new Client(stack.url, username, 'long enough');
  };
  const countOf = async (where: string) => {
    const [row] = await database.unsafe<{ n: number }[]>(
      `select count(*)::int as n from jobs where owner = 'greedy' and ${where}`,
    );
    return row?.n;
  };
  const fill = (kind: string, queue: string, payload: object) =>
    database`insert into jobs (id, kind, queue, owner, session, payload)
      select '0' || ${queue} || lpad(n::text, 18, '0'), ${kind}, ${queue}, 'greedy', ${sid}, ${JSON.stringify(payload)}::text::jsonb
      from generate_series(1, ${QUEUED}::int) n`;

  beforeAll(async () => {
    database = openStackDatabase(stack);
    const greedy = await addUser('greedy');
    other = await addUser('other');
    sid = await openSession(greedy, sshd);
    await fill('command', 'remote', { command: 'sleep 3600' });
    await waitFor(async () => (await countOf("state = 'running'")) === GIVEN, {
      what: 'his commands to have every slot that he may have',
      timeoutMs: 30_000,
    });
  });
  afterAll(async () => {
    await database`delete from jobs where owner = 'greedy' and state = 'queued'`;
    await database`update sessions set ended = now() where owner = 'greedy'`;
    await waitFor(async () => (await countOf('finished is null')) === 0, {
      what: 'his commands to be stopped',
      timeoutMs: 30_000,
    });
    await database.end();
  });

  const untilStarted = (id: string) =>
    waitFor(
      async () => {
        const job = await other.get<Job>(`/api/jobs/${id}`);
        return job.state !== 'queued' && job;
      },
      { what: 'the command to start', timeoutMs: 30_000 },
    );

  test('another opens a session and runs commands at once', async () => {
    const began = performance.now();
    const session = await openSession(other, sshd);
    const opened = performance.now();
    const { id } = await launchAsync(other, session, 'sleep 3600');
    await untilStarted(id);
    const started = performance.now();
    console.log(
      `opened in ${Math.round(opened - began)} ms, started in ${Math.round(started - opened)} ms`,
    );
    expect(await countOf('finished is not null')).toBe(1);
    expect(await countOf("state = 'running'")).toBe(GIVEN);
    const listed = await other.fetch(`/api/remotes/${session}/browse/`, { method: 'POST' });
    expect(listed.status).toBe(200);
    await listed.body?.cancel();
    await other.fetch(`/api/remotes/${session}`, { method: 'DELETE' });
  });

  test('two who queue as much have half each, and turns where slots become free', async () => {
    const session = await openSession(other, sshd);
    const jobs = await Promise.all(
      Array.from({ length: 2 * SLOTS }, () => launchAsync(other, session, 'sleep 3600')),
    );
    const running = async () => {
      const states = await Promise.all(jobs.map(({ id }) => other.get<Job>(`/api/jobs/${id}`)));
      return states.filter(({ state }) => state === 'running').length;
    };
    await waitFor(async () => (await running()) === 2, { what: 'the reserve to be given' });
    // As his commands end, the other's begin, until both have half.
    await database`update jobs set cancel_requested = now()
      where owner = 'greedy' and id in (select id from jobs where owner = 'greedy' and state = 'running' order by id limit 9)`;
    await waitFor(
      async () => (await running()) === SLOTS && (await countOf("state = 'running'")) === SLOTS,
      {
        what: 'both to have half',
        timeoutMs: 30_000,
      },
    );
    await other.fetch(`/api/remotes/${session}`, { method: 'DELETE' });
  });
});
