import { join } from 'node:path';
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ReadinessCheck } from '../../api/monitoring/readiness.ts';
import { Client } from '../../servers/api-client.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { createLog } from '../../shared/process/log.ts';
import { API_METRICS, WORKER_METRICS } from '../../shared/process/metrics.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { countRowsRead } from '../harness/databases/rows-read.ts';
import {
  addHost,
  holderOf,
  type Job,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { readMetrics, sum } from '../harness/stacks/metrics.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

type Readiness = {
  ready: boolean;
  checks: Record<'database' | 'objects' | 'queue' | 'work', string | null>;
  degraded: string[];
  workers: number | null;
};

describeStack(missingPrograms('sshd'), 'what operators see', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    workers: 2,
    env: { LOG_LEVEL: 'debug' },
    alone: 'counts all that its processes did',
  });
  let rows: postgres.Sql;
  let sid: string;

  beforeAll(async () => {
    rows = openStackDatabase(stack);
    sid = await openSession(client, sshd);
  });
  afterAll(() => rows?.end());

  const ready = async () => {
    const answer = await fetch(`${stack.url}/readyz`);
    return { status: answer.status, ...((await answer.json()) as Readiness) };
  };
  /** What is counted may be a second old. */
  const untilReady = (expected: object) => expect.poll(ready).toMatchObject(expected);

  test('GET / says what this is and where to go, as JSON, and leads browsers to the console', async () => {
    const answer = await fetch(stack.url);
    const about = (await answer.json()) as Record<string, Record<string, string>>;
    expect(about).toMatchObject({ name: 'Windlass', operation: { '/readyz': expect.any(String) } });
    // What it names is there: it asks for credentials, or is open.
    const named = Object.values(about).flatMap(part =>
      typeof part === 'object' && !Array.isArray(part) ? Object.keys(part) : [],
    );
    expect(named.length).toBeGreaterThan(20);
    for (const route of named) {
      const path = route.replace(/^[A-Z]+ /, '').replace(/\(\w+\)/g, 'x');
      // No operation takes PATCH: 405 says that the path is one.
      const { status } = await client.fetch(path, { method: 'PATCH' });
      expect([route, status]).toEqual([route, 405]);
    }

    const page = await fetch(stack.url, { headers: { Accept: 'text/html' } });
    expect([page.status, page.url]).toEqual([200, `${stack.url}/console/`]);
    expect(page.headers.get('Content-Security-Policy')).toContain("default-src 'none'");
  });

  test('/metrics is for server administrators alone', async () => {
    await client.post('/api/users', { username: 'plain', password: 'long enough' });
    const plain = new Client(stack.url, 'plain', 'long enough');
    await expectProblem(await fetch(`${stack.url}/metrics`), 401, 'unauthorized');
    await expectProblem(await plain.fetch('/metrics'), 403, 'forbidden');
    const answer = await client.fetch('/metrics');
    expect(answer.headers.get('Content-Type')).toMatch(/^text\/plain; version=0.0.4/);
    const asked = { name: 'prometheus', scope: 'read' };
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', asked);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await fetch(`${stack.url}/metrics`, { headers })).status).toBe(200);
  });

  test('requests are counted by route pattern and class of status, never by what clients write', async () => {
    for (let n = 0; n < 3; n++) {
      await client.fetch(`/api/jobs/unheard-of-${n}`);
      await client.fetch(`/jobs/unheard-of-${n}`);
      await client.fetch(`/nowhere/unheard-of-${n}`);
    }
    await client.fetch('/api/events/unheard-of/a%?x=unheard-of', { method: 'POST' });
    await client.fetch('/admin/queues/queue/unheard-of');
    const counted = { method: 'GET', route: '/jobs/:id', status: '4xx' };
    const samples = await waitFor(
      async () => {
        const found = await readMetrics(client);
        return sum(found, 'windlass_http_requests_total', counted) >= 6 ? found : undefined;
      },
      { what: 'six requests for jobs to be counted' },
    );
    expect(sum(samples, 'windlass_http_request_duration_seconds_count', counted)).toBe(6);
    expect(
      sum(samples, 'windlass_http_requests_total', { route: 'none', status: '4xx' }),
    ).toBeGreaterThanOrEqual(3);
    expect(
      sum(samples, 'windlass_http_requests_total', { method: 'POST', route: '/events/*event' }),
    ).toBe(1);
    expect(
      sum(samples, 'windlass_http_requests_total', { method: 'GET', route: '/admin/queues' }),
    ).toBe(1);
    expect(JSON.stringify(samples)).not.toContain('unheard-of');
    expect(sum(samples, 'process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(samples.map(({ name }) => name)).toContain('nodejs_eventloop_lag_p99_seconds');
  });

  test('workers count waits, durations and outcomes of jobs', async () => {
    await waitForEnd(client, (await launchAsync(client, sid, 'true')).id);
    const gone = await launchAsync(client, sid, 'exec sleep 600');
    await holderOf(client, gone.id);
    await waitFor(
      async () =>
        sum(await readMetrics(client), 'windlass_jobs_running', { kind: 'command' }) === 1,
      { what: 'the job to be counted as running' },
    );
    await client.delete(`/api/jobs/${gone.id}`);
    await waitForEnd(client, gone.id);
    const name = 'windlass_job_duration_seconds_count';
    const samples = await waitFor(
      async () => {
        const found = await readMetrics(client);
        const ended = ['succeeded', 'cancelled'].map(outcome =>
          sum(found, name, { kind: 'command', outcome }),
        );
        return ended.every(count => count === 1) ? found : undefined;
      },
      { what: 'the workers to report both ends' },
    );
    expect(sum(samples, 'windlass_job_wait_seconds_count', { kind: 'command' })).toBe(2);
    expect(sum(samples, 'windlass_job_wait_seconds_count', { kind: 'connect' })).toBe(1);
    expect(sum(samples, 'windlass_jobs_running')).toBe(0);
    const { workers } = await ready();
    expect(sum(samples, 'windlass_workers_alive')).toBe(workers);
    expect(sum(samples, 'windlass_worker_slots', { queue: 'remote' })).toBeGreaterThan(0);
    const reporting = samples.filter(sample => sample.name === 'windlass_worker_memory_bytes');
    expect(reporting.map(({ labels }) => labels.worker)).toHaveLength(workers ?? 0);
  });

  test('every metric of the code has its line, and no other of its name has', async () => {
    const text = await (await client.fetch('/metrics')).text();
    const typed = [...text.matchAll(/^# TYPE (windlass_\w+)/gm)].map(([, name]) => name);
    expect(typed.toSorted()).toEqual(
      [...Object.keys(API_METRICS), ...Object.keys(WORKER_METRICS)].toSorted(),
    );
  });

  test('a worker that was killed is a reclaimed lease, a retake, and a worker less', async () => {
    const job = await launchAsync(client, sid, 'exec sleep 600');
    const pid = await holderOf(client, job.id);
    const before = await readMetrics(client);
    const [victim] = before.filter(
      ({ name, labels }) =>
        name === 'windlass_worker_memory_bytes' && pidOfWorker(labels.worker ?? '') === pid,
    );
    const worker = victim?.labels.worker ?? '';
    expect(worker).not.toBe('');
    process.kill(pid, 'SIGKILL');
    const after = await waitFor(
      async () => {
        const found = await readMetrics(client);
        const retaken = sum(found, 'windlass_job_retakes_total', { kind: 'command' });
        // The dispatcher that took the lease back is another worker, which tells of it with its own next beat.
        const expired = sum(found, 'windlass_leases_expired_total');
        return retaken > 0 && expired > 0 && !JSON.stringify(found).includes(worker)
          ? found
          : undefined;
      },
      { what: 'the job to be retaken and the worker to vanish', timeoutMs: 60_000 },
    );
    expect(sum(after, 'windlass_jobs_running', { kind: 'command' })).toBe(1);
    await client.delete(`/api/jobs/${job.id}`);
    await waitForEnd(client, job.id);
  });

  test('one request id leads from the answer to every line of the work', async () => {
    const requestId = `trace-${form.name}-1`;
    const job = await client.post<Job>(
      '/api/remotes/launch',
      { sid, command: 'true' },
      { Prefer: 'respond-async', 'X-Request-Id': requestId },
    );
    await waitForEnd(client, job.id);
    const lines = await waitFor(
      () => {
        const found = logLines(stack).filter(line => line.requestId === requestId);
        return found.some(line => line.msg === 'job ended') ? found : undefined;
      },
      { what: 'the lines of the attempt' },
    );
    expect(lines.map(line => line.msg)).toEqual(
      expect.arrayContaining(['request', 'job claimed', 'job ended']),
    );
    const about = logLines(stack).filter(line => line.job === job.id);
    expect(about.length).toBeGreaterThan(1);
    for (const line of about) expect(line).toMatchObject({ requestId, job: job.id });
  });

  test('work that nobody does degrades it, and names the queue; work that may not be done yet does not', async () => {
    expect(await ready()).toMatchObject({
      status: 200,
      ready: true,
      checks: { database: null, objects: null, queue: null, work: null },
      degraded: [],
      workers: expect.any(Number),
    });
    // Its lease expires, and nobody is there to take it back.
    const lost = await launchAsync(client, sid, 'exec sleep 600');
    await holderOf(client, lost.id);
    stack.kill('windlass-worker', 'SIGSTOP');
    try {
      const job = await launchAsync(client, sid, 'true');
      const stuck = await waitFor(
        async () => {
          const found = await ready();
          return found.checks.work?.startsWith('Work waits') ? found : undefined;
        },
        { what: 'the work to count as stuck', timeoutMs: 60_000, intervalMs: 500 },
      );
      expect(stuck).toMatchObject({
        status: 200,
        ready: true,
        checks: {
          database: null,
          objects: null,
          work: expect.stringMatching(
            /remote, 1 job, for 3\d s, no worker takes its jobs.*No upkeep worker is alive/,
          ),
        },
        degraded: [stuck.checks.work],
        workers: 0,
      });
      const samples = await readMetrics(client);
      expect(sum(samples, 'windlass_queue_depth', { queue: 'remote' })).toBe(1);
      expect(
        sum(samples, 'windlass_queue_oldest_waiting_seconds', { queue: 'remote' }),
      ).toBeGreaterThan(30);
      expect(sum(samples, 'windlass_workers_alive')).toBe(0);
      expect(sum(samples, 'windlass_queue_stuck', { queue: 'remote' })).toBe(1);
      expect(sum(samples, 'windlass_queue_stuck')).toBe(1);

      await rows`update jobs set not_before = now() + interval '1 hour' where id = ${job.id}`;
      await untilReady({
        status: 200,
        workers: 0,
        checks: { work: expect.stringMatching(/^No upkeep worker is alive/) },
      });
      const held = await readMetrics(client);
      expect(sum(held, 'windlass_queue_depth', { queue: 'remote' })).toBe(1);
      expect(sum(held, 'windlass_queue_oldest_waiting_seconds', { queue: 'remote' })).toBe(0);
      expect(sum(held, 'windlass_queue_stuck')).toBe(0);
      // As where the clock was set back while it paused: upkeep, once there is one, does not let it wait.
      await rows`update jobs set dispatched = null, epoch = epoch + 1, not_before = now() + interval '2 hours'
        where id = ${job.id}`;
      expect((await ready()).degraded).toHaveLength(1);
      stack.kill('windlass-worker', 'SIGCONT');
      await waitForEnd(client, job.id);
      await client.delete(`/api/jobs/${lost.id}`);
      await waitForEnd(client, lost.id);
      await untilReady({ status: 200, checks: { work: null } });
    } finally {
      stack.kill('windlass-worker', 'SIGCONT');
    }
  });

  test('that no worker does upkeep degrades it, however many are alive', async () => {
    const upkeep = async () => sum(await readMetrics(client), 'windlass_upkeep_workers_alive');
    const kinds = async () => {
      const { items } = await client.get<{ items: { kinds: string[] }[] }>('/api/workers');
      return items.flatMap(worker => worker.kinds);
    };
    expect(await upkeep()).toBeGreaterThan(0);
    expect(await kinds()).toContain('upkeep');
    await rows`update workers set upkeep = false`;
    try {
      expect(await upkeep()).toBe(0);
      expect(await kinds()).not.toContain('upkeep');
      const work = expect.stringMatching(/^No upkeep worker is alive/);
      await untilReady({ status: 200, ready: true, checks: { work }, degraded: [work] });
    } finally {
      await rows`update workers set upkeep = null`;
    }
    await untilReady({ checks: { work: null }, degraded: [] });
  });

  test('the slots of a draining worker do not count', async () => {
    const slots = async () =>
      sum(await readMetrics(client), 'windlass_worker_slots', { queue: 'remote' });
    const before = await slots();
    await rows`update workers set draining = true where slots ? 'remote'`;
    try {
      expect(await slots()).toBe(0);
    } finally {
      await rows`update workers set draining = false`;
    }
    expect(await slots()).toBe(before);
  });

  test('a host that is unreachable is counted by its code and its name, and told with both', async () => {
    const port = await findFreePort();
    await addHost(client, sshd, { name: 'away', port });
    const code = 'remote_connection_failed';
    const body = { hostname: 'away', username: sshd.username, privateKey: sshd.privateKey };
    const answer = await client.fetch('/api/remotes', {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const { detail } = await expectProblem(answer, 500, code);
    const samples = await waitFor(
      async () => {
        const found = await readMetrics(client);
        return sum(found, 'windlass_host_connection_failures_total', { host: 'away' }) > 0
          ? found
          : undefined;
      },
      { what: 'the worker to tell of the host' },
    );
    const counted = (label: string) =>
      sum(samples, 'windlass_http_requests_total', { status: '5xx', code: label });
    expect([counted(code), counted('internal'), counted('unavailable')]).toEqual([1, 0, 0]);
    const lines = logLines(stack);
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'request', status: 500, code, detail }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'job failed', code, owner: 'admin', host: 'away' }),
    );
  });
});

type LogLine = { msg?: string; requestId?: string; job?: string };

/** The JSON lines of everything that was printed. */
function logLines(stack: Stack): LogLine[] {
  return stack
    .log()
    .split('\n')
    .filter(line => line.startsWith('{') && line.endsWith('}'))
    .map(line => JSON.parse(line) as LogLine);
}

describe('requests of anybody', () => {
  const given = withDatabase('readiness');

  test('have the jobs counted once a second, however many there are', async () => {
    const { sql } = given.database();
    await sql`insert into workers (id, host, pid, slots, understands, seen)
      values ('w', 'h', 1, '{"remote": 1}', '{"command": 1}', 'infinity')`;
    await sql`insert into jobs (id, kind, queue, owner, payload, created)
      select n::text, 'command', 'remote', 'ada', '{}', now() - interval '1 hour' from generate_series(1, 1000) n`;
    await sql`analyze jobs`;
    // A process that began lately does not ask what its workers do.
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const count = (times: number, seconds: number) =>
        countRowsRead(given, ['jobs'], async database => {
          const check = new ReadinessCheck({
            database,
            objects: new FileStore(join(given.path, 'objects')),
            queues: { check: async () => {}, evictionPolicy: async () => undefined },
            freeSpace: { describeShortage: async () => undefined },
            log: createLog({ level: 'silent', name: 'test' }),
            stopping: new AbortController().signal,
          } as unknown as ConstructorParameters<typeof ReadinessCheck>[0]);
          vi.advanceTimersByTime(60_000);
          for (let n = 0; n < times; n++) {
            expect((await check.run()).checks.work).toContain('remote, 1000 jobs');
            vi.advanceTimersByTime((seconds * 1_000) / times);
          }
        });
      // The first makes the store that of the database.
      await count(1, 0);
      const once = await count(1, 0);
      expect(once.jobs).toBeGreaterThan(1_000);
      expect(await count(10, 0.9)).toEqual(once);
      expect(await count(10, 10)).toEqual({ jobs: 10 * (once.jobs ?? 0) });
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a database that hangs', () => {
  const stack = useStarted(() => startStack());

  const signalDatabase = (signal: NodeJS.Signals) => {
    for (const name of ['postgres', 'postgres-child']) stack.kill(name, signal);
  };

  test('does not make the checks hang', async () => {
    signalDatabase('SIGSTOP');
    try {
      const answers = await Promise.all(
        Array.from({ length: 5 }, () =>
          fetch(`${stack.url}/readyz`, { signal: AbortSignal.timeout(20_000) }),
        ),
      );
      for (const answer of answers) {
        expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '2']);
        expect(await answer.json()).toEqual({
          ready: false,
          checks: {
            database: 'Service unavailable: the database did not answer within 2 seconds.',
            objects: null,
            queue: 'The queue cannot be reached; work is accepted and waits.',
            work: null,
          },
          degraded: ['The queue cannot be reached; work is accepted and waits.'],
          workers: null,
        });
      }
      expect((await fetch(`${stack.url}/healthz`)).status).toBe(200);
    } finally {
      signalDatabase('SIGCONT');
    }
    await waitFor(async () => (await fetch(`${stack.url}/readyz`)).status === 200, {
      what: 'the service to be ready again',
      timeoutMs: 60_000,
    });
  });
});
