import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import {
  addHost,
  connectClient,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingMinio, startMinio, type TestMinio } from '../harness/servers/minio.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { readMetrics, sum } from '../harness/stacks/metrics.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What is asked of a service whose dependency is unreachable is answered within this. */
const SOON_MS = 10_000;
/** What the work that waited for it may take once it is back. */
const RECOVERED_MS = 20_000;
/** More than may stay in the database, in lines that a seed makes. */
const LINES = 6_000_000;

const missing = missingMinio() ?? missingPrograms('sshd', 'ffmpeg', 'redis-server');

describeUnless(missing, 'dependencies that become unreachable and come back', () => {
  let minio: TestMinio;
  let proxy: TcpProxy;
  let stack: Stack;
  let sshd: TestSshd;
  let client: Client;
  let sid: string;
  let images: string[];
  let kept: string;

  beforeAll(async () => {
    [minio, sshd] = await Promise.all([startMinio(), startTestSshd()]);
    proxy = await startTcpProxy(minio);
    const { accessKey: S3_ACCESS_KEY, secretKey: S3_SECRET_KEY } = minio;
    const S3_ENDPOINT = `http://127.0.0.1:${proxy.port}`;
    stack = await startStack({
      redis: true,
      env: { S3_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY },
    });
    client = connectClient(stack);
    await addHost(client, sshd);
    sid = await openSession(client, sshd);
    images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 10 });
    kept = await makeVideo('host');
    await waitForVideo(kept);
  });
  // What a failed test left away.
  let putRight: () => unknown = () => {};
  afterEach(async () => {
    await putRight();
    putRight = () => {};
    proxy.heal();
  });
  afterAll(async () => {
    await stack?.stop();
    await proxy?.stop();
    await minio?.stop();
    await sshd?.stop();
  });

  const makeVideo = async (encode: 'host' | 'worker') => {
    const body = { 'content-type': 'video/mp4', images, fps: 10, encode };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    return `/api/remotes/${sid}/videos/${vsid}`;
  };
  const statusOf = (at: string) =>
    client.get<{ ok: boolean; ready: boolean; message: string }>(`${at}/status`);
  const waitForVideo = (at: string, timeoutMs = 60_000) =>
    waitFor(
      async () => {
        const status = await statusOf(at);
        expect(status.ok).toBe(true);
        return status.ready;
      },
      { what: `the video ${at}`, timeoutMs, intervalMs: 100 },
    );
  const soon = (path: string) => client.fetch(path, { signal: AbortSignal.timeout(SOON_MS) });
  const pids = () =>
    stack
      .pids()
      .filter(({ name }) => name.startsWith('windlass-'))
      .map(({ pid }) => pid)
      .sort();

  /** While the store is unreachable: everything that needs no object goes on. */
  async function expectTheRest(): Promise<void> {
    const answer = await client.post<{ output: string; returncode: number }>(
      '/api/remotes/launch',
      { sid, command: 'echo small' },
    );
    expect(answer).toMatchObject({ output: 'small\n', returncode: 0 });
    const { id } = await client.post<{ id: string }>('/api/projects', { name: 'meanwhile' });
    expect((await client.get<{ name: string }>(`/api/projects/${id}`)).name).toBe('meanwhile');
    await client.delete(`/api/projects/${id}`);
    expect((await soon('/healthz')).status).toBe(200);
    expect((await soon(`${kept}/status`)).status).toBe(200);
    expect((await soon('/api/jobs')).status).toBe(200);
  }

  async function expectObjectsUnreachable(): Promise<void> {
    const job = kept.split('/').at(-1);
    for (const path of [kept, `/api/jobs/${job}/result`]) {
      const response = await soon(path);
      expect(response.headers.get('Retry-After')).toMatch(/^\d+$/);
      await expectProblem(response, 503, 'unavailable');
    }
    const ready = await soon('/readyz');
    expect([ready.status, await ready.json()]).toEqual([
      503,
      expect.objectContaining({
        ready: false,
        checks: expect.objectContaining({ database: null, objects: expect.stringMatching(/\S/) }),
      }),
    ]);
  }

  /** Level and text of the lines that this process told of one of its dependencies, at the default level of the log. */
  const toldOf = (dependency: string, name: string) =>
    stack
      .log()
      .split('\n')
      .filter(line => line.startsWith('{') && line.includes(`"dependency":"${dependency}"`))
      .map(line => JSON.parse(line) as { name: string; level: number; msg: string })
      .filter(line => line.name === name)
      .map(({ level, msg }) => [level, msg]);

  async function expectReady(): Promise<void> {
    await waitFor(async () => (await soon('/readyz')).status === 200, {
      what: 'the service to be ready',
      timeoutMs: RECOVERED_MS,
    });
  }

  const outages: [string, () => unknown, () => unknown][] = [
    ['stopped', () => minio.down(), () => minio.up()],
    ['silent', () => proxy.blackhole(), () => proxy.heal()],
  ];
  for (const [name, leave, comeBack] of outages) {
    test(`MinIO is ${name}: 503 for what needs it, all else goes on, and nothing is lost`, {
      timeout: 180_000,
    }, async () => {
      const before = pids();
      const bytesBefore = await (await client.fetch(kept)).arrayBuffer();
      const large = await launchAsync(client, sid, `seq 1 ${LINES}`);
      const long = await launchAsync(client, sid, 'echo begun; sleep 5; echo done');
      await leave();
      putRight = comeBack;
      const waiting = [await makeVideo('host'), await makeVideo('worker')];
      await expectObjectsUnreachable();
      await expectTheRest();
      for (const at of waiting) {
        await waitFor(
          async () =>
            (await statusOf(at)).message === 'storing the video: waiting for the object store',
          {
            what: 'the video to wait for the store',
            timeoutMs: 60_000,
            intervalMs: 100,
          },
        );
      }
      expect(await waitForEnd(client, long.id)).toMatchObject({ state: 'succeeded' });
      expect(String(await readOutput(client, long.id))).toBe('begun\ndone\n');
      await expectObjectsUnreachable();
      expect((await client.get<Job>(`/api/jobs/${large.id}`)).state).toBe('running');

      putRight = () => {};
      await comeBack();
      await Promise.all(waiting.map(at => waitForVideo(at, RECOVERED_MS)));
      await expectReady();
      expect(await waitForEnd(client, large.id)).toMatchObject({ state: 'succeeded' });
      expect(sha256(await readOutput(client, large.id))).toBe(sha256(countTo(LINES)));
      const bytes = await (await client.fetch(kept)).arrayBuffer();
      expect(Buffer.from(bytes).equals(Buffer.from(bytesBefore))).toBe(true);
      for (const at of waiting)
        expect((await (await client.fetch(at)).arrayBuffer()).byteLength).toBeGreaterThan(500);
      expect(pids()).toEqual(before);
    });
  }

  test('MinIO is unreachable when a launch is answered: 202, for it has run', async () => {
    const headers = { 'Idempotency-Key': 'printed' };
    const body = JSON.stringify({ sid, command: `seq 1 ${LINES}` });
    const launch = () => client.fetch('/api/remotes/launch', { method: 'POST', headers, body });
    const first = await launch();
    expect(first.status).toBe(200);
    const { output, job } = (await first.json()) as { output: string; job: string };
    expect(output.startsWith('1\n2\n')).toBe(true);
    await minio.down();
    putRight = () => minio.up();
    const again = await launch();
    expect([again.status, again.headers.get('Location')]).toEqual([202, `/api/jobs/${job}`]);
    expect(await again.json()).toMatchObject({ id: job, state: 'succeeded' });
    putRight = () => {};
    await minio.up();
    const printed = await waitFor(
      async () => {
        const answer = await launch();
        return answer.status === 200 ? ((await answer.json()) as { output: string }) : undefined;
      },
      { what: 'the answer', timeoutMs: RECOVERED_MS },
    );
    expect(printed).toMatchObject({ job, truncated: true });
    expect(printed.output === output).toBe(true);
  });

  test('MinIO cuts every answer in the middle: the answer is cut too, and the service lives on', async () => {
    const before = pids();
    for (let i = 0; i < 20; i++) {
      proxy.cutAfter('down', 1_000);
      await client
        .fetch(kept, { signal: AbortSignal.timeout(SOON_MS) })
        .then(response => response.arrayBuffer())
        .catch(() => {});
    }
    proxy.heal();
    expect((await client.fetch(kept)).status).toBe(200);
    expect(pids()).toEqual(before);
  });

  test('Redis is stopped: work is accepted, and done at the latest when it is back', {
    timeout: 120_000,
  }, async () => {
    const { redis } = stack;
    if (!redis) throw new Error('The stack has no Redis.');
    const before = pids();
    const running = await launchAsync(client, sid, 'sleep 3; echo before');
    // A job that no worker has yet may wait for Redis; one that runs does not.
    await waitFor(
      async () => (await client.get<Job>(`/api/jobs/${running.id}`)).state === 'running',
      { what: 'the command to run', intervalMs: 50 },
    );
    await redis.down();
    putRight = () => redis.up();
    const processes = ['api', 'windlass-worker'];
    const jobs = [];
    for (let i = 0; i < 5; i++) jobs.push(await launchAsync(client, sid, `echo ${i}`));
    const video = await makeVideo('worker');
    expect((await soon(kept)).status).toBe(200);
    await waitFor(
      async () => {
        const { checks } = (await (await soon('/readyz')).json()) as {
          checks: { queue: string | null };
        };
        return checks.queue;
      },
      { what: 'the queue to be named as unreachable' },
    );
    // However much runs.
    expect(sum(await readMetrics(client), 'windlass_queue_up')).toBe(0);
    expect(await waitForEnd(client, running.id)).toMatchObject({ state: 'succeeded' });
    const unreachable = [40, 'the queue is unreachable'];
    for (const name of processes)
      await waitFor(() => toldOf('the queue', name).length > 0, { what: `${name} to tell of it` });
    putRight = () => {};
    await redis.up();
    const ended = await Promise.all(jobs.map(({ id }) => waitForEnd(client, id, RECOVERED_MS)));
    expect(ended.map(({ state }) => state)).toEqual(Array(5).fill('succeeded'));
    for (const [i, { id }] of jobs.entries())
      expect(String(await readOutput(client, id))).toBe(`${i}\n`);
    await waitForVideo(video, RECOVERED_MS);
    await expectReady();
    expect(sum(await readMetrics(client), 'windlass_queue_up')).toBe(1);
    const back = [30, 'the queue is back'];
    for (const name of processes) {
      await waitFor(() => toldOf('the queue', name).some(([level]) => level === 30), {
        what: `${name} to tell that it is back`,
      });
      // Once for each process of the name, not for each failure.
      const told = toldOf('the queue', name);
      expect(told.length).toBeLessThanOrEqual(name === 'api' ? 2 : 4);
      expect(told).toEqual(expect.arrayContaining([unreachable, back]));
    }
    expect(pids()).toEqual(before);
  });
});

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** What `seq 1 COUNT` prints. */
function countTo(count: number): Buffer {
  const pieces: string[] = [];
  for (let i = 1; i <= count; i++) pieces.push(`${i}\n`);
  return Buffer.from(pieces.join(''));
}
