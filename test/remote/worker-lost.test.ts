import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_CONSECUTIVE_LOSSES } from '../../shared/jobs/lease.ts';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { isFull } from '../faults/settings.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { historyOf, type Job, openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a job whose workers die one after the other', form => {
  const { stack, client, sshd, proxy } = useProxiedStack(form);
  let sid: string;
  let sql: ReturnType<typeof openStackDatabase>;
  beforeAll(async () => {
    sid = await openSession(client, sshd);
    sql = openStackDatabase(stack);
  });
  afterAll(() => sql?.end());

  const lossesOf = async (id: string): Promise<number> => {
    const [row] = await sql<
      { consecutiveLosses: number }[]
    >`select consecutive_losses as "consecutiveLosses" from jobs where id = ${id}`;
    return row?.consecutiveLosses ?? -1;
  };

  /** Kills who holds the job, once it has told this, until `times` more deaths have been counted or it has ended. */
  async function killHolders(id: string, times: number, told: string | null = null): Promise<void> {
    for (let n = 0; n < times; n++) {
      const before = await lossesOf(id);
      // What the worker before has told is not what this one tells, which takes the job 8 s later.
      if (told !== null && n > 0) await sql`update jobs set message = null where id = ${id}`;
      const holder = await waitFor(
        async () => {
          const [row] = await sql<{ worker: string }[]>`
            select worker from jobs where id = ${id} and lease_token is not null
              and (${told}::text is null or message = ${told})`;
          return row && pidOfWorker(row.worker);
        },
        { what: 'a worker to hold the job', timeoutMs: 60_000 },
      );
      process.kill(holder, 'SIGKILL');
      await waitFor(async () => (await lossesOf(id)) > before, {
        what: 'the death to be noticed',
        timeoutMs: 60_000,
        intervalMs: 100,
      });
    }
  }

  /** A command that no worker gets as far as to ask the host for. */
  async function launchInVain(command: string): Promise<{ id: string; answer: Promise<Response> }> {
    proxy.cut();
    proxy.blackhole();
    const answer = client.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({ sid, command }),
    });
    const { id } = await waitFor(
      async () => {
        const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=20');
        return items.find(({ kind, state }) => kind === 'command' && state === 'running');
      },
      { what: 'the command to be taken', timeoutMs: 20_000 },
    );
    return { id, answer };
  }

  test('fails as worker_lost after twenty without any progress; it was never run', async () => {
    const { id, answer } = await launchInVain('touch "$HOME/ran-in-vain"');
    // Each death takes a lease of 10 s to be noticed: the short form sees the last two.
    const deaths = isFull ? MAX_CONSECUTIVE_LOSSES : 2;
    await sql`update jobs set consecutive_losses = ${MAX_CONSECUTIVE_LOSSES - deaths} where id = ${id}`;
    await killHolders(id, deaths);
    await expectProblem(await answer, 500, 'worker_lost');
    expect(await client.get<Job>(`/api/jobs/${id}`)).toMatchObject({
      state: 'failed',
      error: { code: 'worker_lost', hint: expect.stringMatching(/\w/) },
    });
    proxy.heal();
    expect(
      (await client.post<{ output: string }>('/api/remotes/launch', { sid, command: 'echo on' }))
        .output,
    ).toBe('on\n');
    expect(existsSync(join(sshd.home, 'ran-in-vain'))).toBe(false);
  }, 600_000);

  test('a video fails as worker_lost, too, although each has begun to look at its frames', async () => {
    proxy.cut();
    proxy.blackhole();
    const body = { 'content-type': 'video/mp4', pattern: join(sshd.home, 'f%d.png') };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    await waitFor(
      async () => (await client.get<{ message?: string }>(`/api/jobs/${vsid}`)).message,
      { what: 'the first worker to begin', timeoutMs: 20_000 },
    );
    await sql`update jobs set consecutive_losses = ${MAX_CONSECUTIVE_LOSSES - 2} where id = ${vsid}`;
    await killHolders(vsid, 2, 'checking frames');
    expect(await client.get<Job>(`/api/jobs/${vsid}`)).toMatchObject({
      state: 'failed',
      error: { code: 'worker_lost' },
    });
    proxy.heal();
  }, 600_000);

  test('goes on where one of them comes to anything: the count begins anew', async () => {
    const { id, answer } = await launchInVain('echo x >>"$HOME/ran"; sleep 3; echo done');
    await sql`update jobs set consecutive_losses = ${MAX_CONSECUTIVE_LOSSES - 2} where id = ${id}`;
    await killHolders(id, 1);
    expect(await lossesOf(id)).toBe(MAX_CONSECUTIVE_LOSSES - 1);
    proxy.heal();
    await waitFor(async () => (await lossesOf(id)) === 0, {
      what: 'the run to be begun',
      timeoutMs: 60_000,
    });
    expect(await (await answer).json()).toMatchObject({ output: 'done\n', returncode: 0 });
    expect(readFileSync(join(sshd.home, 'ran'), 'utf8')).toBe('x\n');
    const history = await historyOf(client, id);
    const told = history.filter(({ event }) => !/host_unreachable|reconnected/.test(event));
    expect(told.slice(-4).map(({ event }) => event)).toEqual([
      ...['lease_lost', 'claimed', 'sent', 'ended'],
    ]);
    const [lost, claimed, , ended] = told.slice(-4).map(({ worker }) => worker);
    expect([lost === claimed, claimed === ended]).toEqual([false, true]);
  });
});
