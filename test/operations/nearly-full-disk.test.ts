import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { writeScratch } from '../../workers/sandbox/scratch-dir.ts';
import { startCommandLine } from '../harness/clients/command-line.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { addUser } from '../harness/clients/users.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { readMetrics, sum } from '../harness/stacks/metrics.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MIB = 1 << 20;
/** LIMIT_FREE_BYTES. */
const KEPT = 100 * MIB;
/** Rows and write-ahead log that the database writes meanwhile, and one look at the disk. */
const SLACK = 48 * MIB;

const disk = makeTempDir('small-disk');
const mounted = missingRoot()
  ? undefined
  : spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=600m,mode=711', 'tmpfs', disk.path]).status ===
    0;
const skip =
  missingRoot() ??
  missingPrograms('sshd', 'ffmpeg') ??
  (mounted ? undefined : { reason: 'needs root that may mount a tmpfs', obtainable: false });
afterAll(() => {
  if (mounted) execFileSync('umount', ['--lazy', disk.path]);
  disk.remove();
});

describeUnless(skip, 'copies on a disk of which LIMIT_FREE_BYTES are kept free', () => {
  const path = join(disk.path, 'copy');
  const { signal } = new AbortController();
  const full = { code: 'insufficient_storage' };
  const freeBytes = () => statfsSync(disk.path).bavail * statfsSync(disk.path).bsize;
  beforeAll(() => void vi.stubEnv('TMPDIR', disk.path));
  afterAll(() => {
    vi.unstubAllEnvs();
    for (const name of ['copy', 'filler']) rmSync(join(disk.path, name), { force: true });
  });

  test('one that has no room is refused, and one whose size is unknown ends in time', async () => {
    const bytes = Readable.from([Buffer.alloc(MIB)]);
    const tooLarge = writeScratch(path, bytes, { signal, keepFree: KEPT, size: 590 * MIB });
    await expect(tooLarge).rejects.toMatchObject(full);
    expect(freeBytes()).toBeGreaterThan(590 * MIB);
    writeFileSync(join(disk.path, 'filler'), Buffer.alloc(freeBytes() - 60 * MIB));
    // 25 MB a second, so that the space is looked at in time.
    const endless = Readable.from(
      (async function* () {
        for (;;) {
          await new Promise(resolve => setTimeout(resolve, 10));
          yield Buffer.alloc(MIB / 4);
        }
      })(),
    );
    rmSync(path, { force: true });
    await expect(writeScratch(path, endless, { signal, keepFree: KEPT })).rejects.toMatchObject(
      full,
    );
    expect(freeBytes()).toBeGreaterThan(5 * MIB);
  });
});

describeUnless(skip, 'a disk of which LIMIT_FREE_BYTES are kept free', () => {
  const env = {
    DATA_DIR: join(disk.path, 'data'),
    LIMIT_FREE_BYTES: String(KEPT),
    // More than a host sends before it is acknowledged.
    LIMIT_SPOOL_BYTES: String(64 * MIB),
    LOG_LEVEL: 'warn',
  };
  const { stack, client, sshd } = useRemoteStack({ start: startStack }, { env });
  const line = useStarted(startCommandLine);
  const free = () => {
    const { bavail, bsize } = statfsSync(disk.path);
    return bavail * bsize;
  };
  const readDegraded = async () => {
    const answer = await stack.api('/readyz');
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { degraded: string[] }).degraded;
  };
  const send = (method: string, path: string, body: object) =>
    client.fetch(path, { method, body: JSON.stringify(body) });
  const shortage = [expect.stringMatching(/^The disk of the object store has \d+ bytes left;/)];

  const isHeld = async (id: string) => {
    const { state, message } = await client.get<Job>(`/api/jobs/${id}`);
    expect(state).toBe('running');
    return message === 'waiting: the disk of the service is full';
  };
  const untilRoom = () =>
    waitFor(async () => (await readDegraded()).length === 0, {
      what: 'the space to come back',
      timeoutMs: 60_000,
    });

  test('a command whose output has no room waits in no slot, and loses nothing', async () => {
    expect(await readDegraded()).toEqual([]);
    const sid = await openSession(client, sshd);
    const print = (size: number) =>
      launchAsync(client, sid, `head -c ${size} /dev/zero | tr '\\0' x; echo all >&2`);
    const other = await print(120 * MIB);
    await waitForEnd(client, other.id, 60_000);
    const silent = await launchAsync(
      client,
      sid,
      'until test -e ended; do sleep 0.1; done; exit 4',
    );
    const bounded = await launchAsync(
      client,
      sid,
      'until test -e begun; do sleep 0.1; done; head -c 20000000 /dev/zero; exec sleep 1000',
      { timeout: 60 },
    );
    const size = free() - KEPT + 60 * MIB;
    const { id } = await print(size);
    const held = { what: 'the command to wait', timeoutMs: 120_000 };
    await waitFor(() => isHeld(id), held);
    writeFileSync(join(sshd.home, 'begun'), '');
    await waitFor(() => isHeld(bounded.id), held);
    // What prints nothing needs no room.
    writeFileSync(join(sshd.home, 'ended'), '');
    expect(await waitForEnd(client, silent.id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 4 },
    });
    expect(free()).toBeGreaterThan(KEPT - SLACK);
    expect(await readDegraded()).toEqual(shortage);
    const told = sum(await readMetrics(client), 'windlass_storage_free_bytes');
    expect(Math.abs(told - free())).toBeLessThan(SLACK);
    await waitFor(() => /The disk of the object store has \d+ bytes left/.test(stack.log()), {
      what: 'the log to warn',
    });
    // The next look finds no room either.
    const tag = async () => (await client.fetch(`/api/jobs/${id}`)).headers.get('ETag');
    const before = await tag();
    await waitFor(async () => (await tag()) !== before, {
      what: 'the next look',
      timeoutMs: 60_000,
    });
    await waitFor(() => isHeld(id), held);
    expect(free()).toBeGreaterThan(KEPT - SLACK);
    await client.delete(`/api/jobs/${other.id}/record`);
    expect(await waitForEnd(client, id, 120_000)).toMatchObject({
      state: 'succeeded',
      message: null,
      result: { returncode: 0 },
    });
    expect((await readOutput(client, id)).equals(Buffer.alloc(size, 'x'))).toBe(true);
    expect(String(await readOutput(client, id, 'stderr'))).toBe('all\n');
    expect(await waitForEnd(client, bounded.id, 120_000)).toMatchObject({
      state: 'failed',
      message: null,
      error: { code: 'time_limit' },
    });
    expect((await readOutput(client, bounded.id)).equals(Buffer.alloc(20_000_000))).toBe(true);
    await client.delete(`/api/jobs/${bounded.id}/record`);
    await client.delete(`/api/jobs/${id}/record`);
    await untilRoom();
    await client.delete(`/api/remotes/${sid}`);
  });

  test('one that writes without end waits until it is cancelled, and is removed', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'exec tr "\\0" x </dev/zero');
    await waitFor(() => isHeld(id), { what: 'the command to wait', timeoutMs: 120_000 });
    // The host has the rest of what it prints: the spool is full.
    await waitFor(() => spawnSync('pgrep', ['-f', '^tr .0 x$']).status === 0, { what: 'it' });
    await client.delete(`/api/jobs/${id}`);
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'cancelled',
      message: null,
      error: { code: 'cancelled', detail: 'Cancelled.' },
    });
    expect(free()).toBeGreaterThan(KEPT - SLACK);
    // What was stored before can be read.
    expect(String((await readOutput(client, id)).subarray(0, 3))).toBe('xxx');
    await waitFor(() => spawnSync('pgrep', ['-f', '^tr .0 x$']).status === 1, {
      what: 'the command to end on its host',
    });
    await client.delete(`/api/jobs/${id}/record`);
    await untilRoom();
    const after = await launchAsync(client, sid, 'echo works');
    expect(await waitForEnd(client, after.id)).toMatchObject({ state: 'succeeded' });
    await client.delete(`/api/remotes/${sid}`);
  });

  test('output, videos, views and tables are refused below the limit, and work above it again', async () => {
    const images = await drawFrames({ folder: join(disk.path, 'frames'), count: 3 });
    const sid = await openSession(client, sshd);
    const { pid, mid } = await makeModel(client);
    const table = await makeTable(client, { mid, aid: 'table', csv: 'a,b\n2,x\n1,y\n' });
    const [writer, reader] = [await addUser(client), await addUser(client)];
    const share = (acl: object) => send('PUT', `/api/projects/${pid}`, { acl });
    expect((await share({ writers: [{ user: writer.username }] })).status).toBe(200);
    const filler = join(disk.path, 'filler');
    // The API reads the free space twice a second at most.
    const launch = () =>
      send('POST', '/api/remotes/launch', { sid, command: 'echo a little; exit 3' });
    const launchLarge = () =>
      send('POST', '/api/remotes/launch', { sid, command: 'cat', stdin: 'x'.repeat(10_000) });
    const setParameter = () => send('PUT', `/api/models/${mid}/parameters/p`, { value: 1 });
    const makeProject = () => send('POST', '/api/projects', { name: 'late' });
    const changeProject = () => send('PUT', `/api/projects/${pid}`, { description: 'late' });
    const addModel = () =>
      send('POST', `/api/projects/${pid}/models`, { name: 'late', 'model-type': 'any' });
    const changeModel = () => send('PUT', `/api/models/${mid}`, { marking: 'late' });
    const openAnother = () => {
      const { username, privateKey } = sshd;
      return send('POST', '/api/remotes', { hostname: 'host', username, privateKey });
    };
    const makeLink = () => send('POST', '/api/links', { path: '/api/users/-' });
    const addBookmark = () => send('POST', `/api/projects/${pid}/bookmarks`, { a: 1 });
    const beginUpload = () =>
      send('POST', '/api/uploads', { mid, input: true, parser: 'csv', aids: ['late'] });
    const makeWebhook = () => send('POST', '/api/webhooks', { url: 'https://192.0.2.1/' });
    const giveAccess = () => share({ readers: [{ user: reader.username }] });
    const stores = [
      ...[launchLarge, setParameter, addBookmark],
      ...[makeProject, changeProject, addModel, changeModel],
      ...[launch, openAnother, makeLink],
      ...[beginUpload, makeWebhook, giveAccess],
    ];
    const makeVideo = () =>
      send('POST', `/api/remotes/${sid}/videos`, {
        'content-type': 'video/mp4',
        images,
        encode: 'worker',
      });
    const countJobs = async () =>
      (await client.get<{ items: object[] }>('/api/jobs?limit=1000')).items.length;
    writeFileSync(filler, Buffer.alloc(Math.max(0, free() - KEPT + SLACK / 2)));
    try {
      await waitFor(async () => (await launch()).status === 507, {
        what: 'the API to see that there is no room',
      });
      const before = await countJobs();
      expect((await makeVideo()).status).toBe(507);
      expect((await client.fetch(`${table}/rows?sort=a`)).status).toBe(507);
      for (const store of stores)
        expect([store.name, (await store()).status]).toEqual([store.name, 507]);
      expect(await countJobs()).toBe(before);
      // Who logs in can remove what takes the room.
      const { url, username, password } = stack;
      const logIn = ['login', url, '--user', username, '--password-stdin'];
      expect(await line.run(logIn, { input: password })).toMatchObject({ code: 0, stderr: '' });
      // Whose access ends, ends now.
      expect((await share({ writers: [] })).status).toBe(200);
    } finally {
      rmSync(filler);
    }
    await waitFor(async () => (await launch()).status === 200, {
      what: 'the API to see that there is room again',
    });
    const { vsid } = (await (await makeVideo()).json()) as { vsid: string };
    expect(await waitForEnd(client, vsid)).toMatchObject({ state: 'succeeded' });
    const sorted = await client.get<{ rows: unknown[][] }>(`${table}/rows?sort=a`);
    expect(sorted.rows).toEqual([
      [1, 'y'],
      [2, 'x'],
    ]);
    const stored = await Promise.all(stores.map(store => store()));
    expect(stored.map(({ status }) => status)).toEqual([
      ...[200, 200, 201, 201, 200, 201, 200],
      ...[200, 200, 201],
      ...[201, 201, 200],
    ]);
  });
});
