import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../shared/database/connect.ts';
import { newId } from '../../shared/ids.ts';
import { SUPPORTED_VERSIONS } from '../../shared/jobs/payload-versions.ts';
import { claimJob } from '../harness/claim-job.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase, stackDatabaseUrl } from '../harness/databases/database.ts';
import { type Job, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** The version of a command's payload in the next release. */
const NEWER = (SUPPORTED_VERSIONS.command ?? 0) + 1;

// What an API of the next release starts while workers of this one are alive.
describeStack(missingPrograms('sshd'), 'work of a newer release', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  let sql: postgres.Sql;
  beforeAll(() => {
    sql = openStackDatabase(stack);
  });
  afterAll(() => sql?.end());

  const insert = async (kind: string, version: number) => {
    const id = newId();
    await sql`insert into jobs (id, kind, queue, owner, payload, payload_version)
      values (${id}, ${kind}, 'remote', ${stack.username}, '{"command": "true", "newer": 1}', ${version})`;
    return id;
  };
  const readDegraded = async () => {
    const answer = await stack.api('/readyz');
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { degraded: string[] }).degraded;
  };

  test('waits, is named, and can be cancelled', { timeout: 120_000 }, async () => {
    const ids = [await insert('future', 1), await insert('command', NEWER)];
    const sid = await openSession(client, sshd);
    // What is supported passes it.
    for (let i = 0; i < 3; i++)
      expect(await waitForEnd(client, (await launchAsync(client, sid, 'true')).id)).toMatchObject({
        state: 'succeeded',
      });
    const named = [
      `1 job of kind command (payload version ${NEWER}) waits for a worker of a newer release.`,
      '1 job of kind future (payload version 1) waits for a worker of a newer release.',
    ];
    await expect.poll(readDegraded).toEqual(named);
    await waitFor(() => named.every(line => stack.log().includes(line.slice(0, -1))), {
      what: 'the log to name them',
      timeoutMs: 40_000,
    });
    const { items } = await client.get<{ items: Job[] }>('/api/jobs');
    for (const id of ids) {
      expect(items.find(job => job.id === id)).toMatchObject({ state: 'queued' });
      expect(await client.get<Job>(`/api/jobs/${id}`)).toMatchObject({ state: 'queued' });
      await client.delete(`/api/jobs/${id}`);
      expect(await client.get<Job>(`/api/jobs/${id}`)).toMatchObject({ state: 'cancelled' });
    }
    await expect.poll(readDegraded).toEqual([]);
  });

  test('is sent to nobody while newer workers take no jobs of its queue', async () => {
    const id = await insert('command', NEWER);
    const others = [newId(), newId()];
    for (const [n, worker] of others.entries())
      await sql`insert into workers (id, host, pid, slots, draining, understands, seen)
        values (${worker}, 'host', 1, ${sql.json(n === 0 ? { video: 1 } : { remote: 1 })}, ${n === 1},
          ${sql.json({ command: NEWER })}, 'infinity')`;
    try {
      const sid = await openSession(client, sshd);
      // What workers understand is read once a second.
      const until = performance.now() + 1_500;
      while (performance.now() < until)
        await waitForEnd(client, (await launchAsync(client, sid, 'true')).id);
      const [row] = await sql`select epoch, dispatched from jobs where id = ${id}`;
      expect(row).toMatchObject({ epoch: 0, dispatched: null });
      await expect
        .poll(readDegraded)
        .toEqual([
          `1 job of kind command (payload version ${NEWER}) waits for a worker of a newer release.`,
        ]);
      await client.delete(`/api/remotes/${sid}`);
    } finally {
      await sql`delete from workers where id = any(${others})`;
      await sql`update jobs set state = 'cancelled', finished = now() where id = ${id}`;
    }
  });

  test('is sent once a newer worker is alive, and left to it', { timeout: 60_000 }, async () => {
    const id = await insert('command', NEWER);
    const worker = newId();
    await sql`insert into workers (id, host, pid, slots, understands, seen)
      values (${worker}, 'host', 1, '{"remote": 1}', ${sql.json({ command: NEWER })}, 'infinity')`;
    const read = async () => {
      const [row] =
        await sql`select epoch, dispatched, not_before, state from jobs where id = ${id}`;
      return row;
    };
    // Workers of this release got its entries and refused them.
    await waitFor(async () => (await read())?.epoch > 1, {
      what: 'it to be dispatched again',
      timeoutMs: 30_000,
    });
    expect(await read()).toMatchObject({ state: 'queued', not_before: expect.anything() });
    const database = openDatabase(stackDatabaseUrl(stack), { max: 1 });
    try {
      const row = await waitFor(
        async () => {
          const epoch = (await read())?.epoch;
          return claimJob(database.db, { id, epoch }, { worker, supported: { command: NEWER } });
        },
        { what: 'the newer worker to claim it' },
      );
      expect(row.payload).toEqual({ command: 'true', newer: 1 });
    } finally {
      await database.close();
      await sql`delete from workers where id = ${worker}`;
      await sql`update jobs set state = 'cancelled', finished = now(), lease_token = null where id = ${id}`;
    }
  });

  test('is not repeated without what is new in it', async () => {
    const id = await insert('command', NEWER);
    const sid = await openSession(client, sshd);
    await sql`update jobs set state = 'failed', finished = now(), session = ${sid} where id = ${id}`;
    const answer = await client.fetch(`/api/jobs/${id}/retry`, { method: 'POST' });
    await expectProblem(answer, 409, 'conflict');
    expect(await sql`select from jobs where retry_of = ${id}`).toHaveLength(0);
    await client.delete(`/api/remotes/${sid}`);
  });
});
