import { expect, test } from 'vitest';
import {
  addHost,
  isEnded,
  type Job,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** Workers that take remote jobs, on either form. */
const WORKERS = 2;
/** LIMIT_HOST_CONNECTS. */
const AT_ONCE = 2;
/** The slots of each worker. */
const SLOTS = 6;
/** What a host has for a login. */
const LOGIN_MS = 20_000;
/** All of them are at work where both workers are, and are more than may connect at once. */
const SESSIONS = SLOTS * WORKERS;

describeStack(missingPrograms('sshd'), 'what stands before a host', form => {
  const { client, sshd, proxy } = useProxiedStack(form, {
    env: { LIMIT_HOST_CONNECTS: String(AT_ONCE), REMOTE_SLOTS: String(SLOTS) },
    workers: 2,
    sshdLines: ['MaxStartups 100'],
  });
  let sids: string[];

  const jobsOf = async (kind: string) => {
    const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=100');
    return items.filter(job => job.kind === kind);
  };
  const endAll = async (jobs: Job[]) => {
    const ended = await Promise.all(jobs.map(({ id }) => waitForEnd(client, id)));
    expect(ended.map(({ state }) => state)).toEqual(jobs.map(() => 'succeeded'));
  };

  const sidsOf = (opened: PromiseSettledResult<string>[]) =>
    opened.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []));

  test('of many who want in no more than the limit are let in at once', async () => {
    const open = (count: number) =>
      Promise.allSettled(Array.from({ length: count }, () => openSession(client, sshd)));
    proxy.blackhole();
    const since = performance.now();
    let isLate: boolean;
    let opened: PromiseSettledResult<string>[];
    const opening = open(SESSIONS);
    try {
      await waitFor(
        async () => {
          const jobs = await jobsOf('connect');
          return jobs.filter(job => job.state === 'running').length === SESSIONS;
        },
        { what: 'all of them to be at work' },
      );
      await waitFor(() => proxy.connections.open >= AT_ONCE * WORKERS, {
        what: 'as many as may to be on their way',
      });
      expect(proxy.connections.open).toBe(AT_ONCE * WORKERS);
    } finally {
      proxy.heal();
      isLate = performance.now() - since > LOGIN_MS / 2;
      opened = await opening;
      sids = sidsOf(opened);
    }
    const failed = opened.filter(({ status }) => status === 'rejected');
    // Where it took so long to get here some logins have run out of their time: their users try again.
    if (!isLate) expect(failed).toEqual([]);
    sids.push(...sidsOf(await open(failed.length)));
    expect(sids).toHaveLength(SESSIONS);
  });

  test('a host that is unreachable sees a probe now and then, however many wait for it', async () => {
    proxy.refuse();
    const since = performance.now();
    const { refused } = proxy.connections;
    const jobs = await Promise.all(sids.map(sid => launchAsync(client, sid, 'true')));
    // To each worker: what sets out before the gate is shut, and three probes after growing waits.
    const attempts = WORKERS * (AT_ONCE + 2 + 3);
    await waitFor(() => proxy.connections.refused - refused >= attempts, {
      what: 'the probes',
      timeoutMs: 40_000,
    });
    // The halves of 1, 2 and 4 s, to which jitter may shorten the waits.
    expect(performance.now() - since).toBeGreaterThan(3_500);
    expect(
      (await Promise.all(jobs.map(({ id }) => client.get<Job>(`/api/jobs/${id}`)))).filter(isEnded),
    ).toEqual([]);
    proxy.heal();
    await endAll(jobs);
  });

  for (const agent of [true, false]) {
    test(`fifty commands of a session ${agent ? 'with' : 'without'} an agent share one connection on each worker`, async () => {
      // What an earlier session has left to do on its host goes another way.
      const own = await startTcpProxy({ host: sshd.host, port: sshd.port });
      try {
        const hostname = await addHost(client, sshd, { name: `own-${agent}`, port: own.port });
        const sid = await openSession(client, sshd, { hostname, agent });
        const launchMany = () =>
          Promise.all(Array.from({ length: 50 }, () => launchAsync(client, sid, 'true')));
        await endAll(await launchMany());
        const { total } = own.connections;
        expect(total).toBeLessThanOrEqual(WORKERS);
        own.cut();
        await endAll(await launchMany());
        expect(own.connections.total).toBeGreaterThan(total);
        expect(own.connections.total - total).toBeLessThanOrEqual(WORKERS);
      } finally {
        await own.stop();
      }
    });
  }
});
