import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { utf8 } from '../harness/clients/tables.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import {
  addHost,
  connectClient,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';
const LIMITS = { LIMIT_SESSIONS: '4', LIMIT_OPEN_JOBS: '3' };

describeStack(missingPrograms('sshd'), 'who may see and do what', form => {
  const { stack, client: admin, sshd } = useRemoteStack(form, { env: LIMITS });
  let alice: Client;
  let bob: Client;
  let sid: string;

  const addUser = async (username: string) => {
    await admin.post('/api/users', { username, password: PASSWORD });
    return new Client(stack.url, username, PASSWORD);
  };
  const send = (client: Client, method: string, path: string, body?: unknown) =>
    client.fetch(path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  /** Starts a command, and waits until it is known to run. */
  const startCommand = async (client: Client, session: string) => {
    const { id } = await launchAsync(client, session, 'echo secret; sleep 60');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    return id;
  };

  beforeAll(async () => {
    [alice, bob] = await Promise.all([addUser('alice'), addUser('bob')]);
    sid = await openSession(alice, sshd);
  });

  test("another user's session is not there, for an administrator neither", async () => {
    const { vsid } = await alice.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, {
      'content-type': 'video/mp4',
      images: ['/none'],
    });
    const requests: [string, string, unknown?][] = [
      ['GET', `/api/remotes/${sid}`],
      ['DELETE', `/api/remotes/${sid}`],
      ['POST', '/api/remotes/launch', { sid, command: 'true' }],
      [
        'POST',
        `/api/remotes/${sid}/videos`,
        { 'content-type': 'video/mp4', images: ['/tmp/none.png'] },
      ],
      ['GET', `/api/remotes/${sid}/videos/${vsid}/status`],
      ['GET', `/api/remotes/${sid}/videos/${vsid}`],
    ];
    for (const client of [bob, admin]) {
      for (const [method, path, body] of requests) {
        await expectProblem(await send(client, method, path, body), 404, 'session_not_found');
      }
      expect(await client.get('/api/remotes')).toEqual({ items: [], next: null });
    }
    const { items } = await alice.get<{ items: { sid: string }[] }>('/api/remotes');
    expect(items.map(item => item.sid)).toEqual([sid]);
    expect((await waitForEnd(alice, vsid)).state).toBe('failed');
  });

  test('no answer about a session holds its credential', async () => {
    const listed = await (await alice.fetch('/api/remotes')).text();
    const one = await (await alice.fetch(`/api/remotes/${sid}`)).text();
    for (const text of [listed, one]) {
      expect(text).not.toMatch(/sealed|PRIVATE KEY|privateKey|password/);
      expect(text).not.toContain(sshd.privateKey.split('\n')[1]);
    }
    expect(Object.keys(JSON.parse(one)).sort()).toEqual([
      'accessed',
      'agent',
      'created',
      'engines',
      'env',
      'expires',
      'hostname',
      'sid',
      'startup',
      'state',
      'username',
    ]);
    for (const secret of sshd.privateKey.split('\n').slice(1, 3))
      expect(stack.log()).not.toContain(secret);
  });

  test("another user's job is not there; an administrator sees that it is, and may cancel it", async () => {
    const id = await startCommand(alice, sid);
    const paths: [string, string][] = [
      ['GET', ''],
      ['GET', '/output'],
      ['GET', '/events'],
      ['GET', '/result'],
      ['POST', '/retry'],
      ['DELETE', ''],
    ];
    for (const [method, path] of paths) {
      await expectProblem(await send(bob, method, `/api/jobs/${id}${path}`), 404, 'not_found');
      if (path !== '')
        await expectProblem(await send(admin, method, `/api/jobs/${id}${path}`), 404, 'not_found');
    }
    expect(await bob.get('/api/jobs')).toEqual({ items: [], next: null });
    const { items } = await admin.get<{ items: Job[] }>('/api/jobs');
    expect(items.map(job => job.id)).not.toContain(id);

    const seen = await admin.get<Job>(`/api/jobs/${id}`);
    expect(seen).toEqual({
      id,
      kind: 'command',
      state: 'running',
      created: expect.any(String),
      started: expect.any(String),
      finished: null,
      progress: null,
      error: null,
      host: 'host',
      worker: expect.stringMatching(/^[\w.-]+-\d+-\w{6}$/),
      owner: 'alice',
    });
    expect((await send(admin, 'DELETE', `/api/jobs/${id}`)).status).toBe(202);
    expect((await waitForEnd(alice, id, 6_000)).state).toBe('cancelled');
  });

  test('users change their own password alone, and the old one ends at once', async () => {
    const carol = await addUser('carol');
    // Twice: the second time the verified password is remembered.
    for (const _ of [1, 2]) expect((await carol.fetch('/api/users/-')).status).toBe(200);
    const change = (client: Client, username: string, body: unknown) =>
      send(client, 'PUT', `/api/users/${username}`, body);
    const next = { password: 'another password', current: PASSWORD };
    expect((await change(carol, 'carol', next)).status).toBe(200);
    expect((await carol.fetch('/api/users/-')).status).toBe(401);
    const renewed = new Client(stack.url, 'carol', 'another password');
    expect(await renewed.get('/api/users/-')).toMatchObject({
      username: 'carol',
      administrator: false,
    });

    const forbidden: [string, string, unknown?][] = [
      ['PUT', '/api/users/bob', { password: 'stolen password' }],
      ['PUT', '/api/users/nobody', { password: 'stolen password' }],
      ['PUT', '/api/users/carol', { administrator: true }],
      ['GET', '/api/users'],
      ['GET', '/api/users/bob'],
      ['POST', '/api/users', { username: 'mallory', password: PASSWORD }],
      ['DELETE', '/api/users/bob'],
    ];
    for (const [method, path, body] of forbidden)
      await expectProblem(await send(renewed, method, path, body), 403, 'forbidden');

    expect((await change(admin, 'carol', { password: PASSWORD })).status).toBe(200);
    expect((await renewed.fetch('/api/users/-')).status).toBe(401);
    expect((await carol.fetch('/api/users/-')).status).toBe(200);
    for (const answer of [
      await send(admin, 'DELETE', '/api/users/admin'),
      await change(admin, 'admin', { administrator: false }),
      await send(admin, 'POST', '/api/users', { username: 'carol', password: PASSWORD }),
    ])
      await expectProblem(answer, 409, 'conflict');
  });

  test('a change of nothing ends no login', async () => {
    const login = await logIn(stack, { username: 'bob', password: PASSWORD });
    const { status } = await send(admin, 'PUT', '/api/users/bob', {});
    expect([status, (await login.fetch('/api/users/-')).status]).toEqual([200, 200]);
  });

  test('who is removed is out at once, and a later user of the name inherits nothing', async () => {
    const dave = await addUser('dave');
    const session = await openSession(dave, sshd);
    const id = await startCommand(dave, session);
    await admin.delete('/api/users/dave');
    expect((await dave.fetch('/api/users/-')).status).toBe(401);
    const ended = await waitFor(
      async () => {
        const job = await admin.get<Job>(`/api/jobs/${id}`);
        return job.state === 'cancelled' && job;
      },
      { what: 'the job to be cancelled' },
    );
    expect(ended).toMatchObject({ owner: expect.stringMatching(/^dave \(removed /) });
    await addUser('dave');
    expect(await dave.get('/api/jobs')).toEqual({ items: [], next: null });
    expect(await dave.get('/api/remotes')).toEqual({ items: [], next: null });
    expect((await dave.fetch(`/api/jobs/${id}/output`)).status).toBe(404);
  });

  test('hosts are changed by administrators alone; others see names and agents', async () => {
    const keys = [sshd.hostKey];
    const requests: [string, string, unknown?][] = [
      ['POST', '/api/hosts', { name: 'mine', address: sshd.host, keys }],
      ['PUT', '/api/hosts/host', { agent: false }],
      ['DELETE', '/api/hosts/host'],
    ];
    for (const [method, path, body] of requests)
      await expectProblem(await send(alice, method, path, body), 403, 'forbidden');
    expect(await alice.get('/api/hosts')).toEqual({
      items: [{ name: 'host', agent: true }],
      next: null,
    });
    expect(await alice.get('/api/hosts/host')).toEqual({ name: 'host', agent: true });
    expect(await admin.get('/api/hosts/host')).toMatchObject({
      address: '127.0.0.1',
      port: sshd.port,
      keys,
      private: true,
    });
    await expectProblem(await send(admin, 'DELETE', '/api/hosts/host'), 409, 'conflict');
    await admin.post('/api/hosts', { name: 'spare', address: 'spare.example', keys });
    await expectProblem(
      await send(admin, 'POST', '/api/hosts', { name: 'spare', address: 'x.example', keys }),
      409,
      'conflict',
    );
    await admin.delete('/api/hosts/spare');
    expect((await admin.fetch('/api/hosts/spare')).status).toBe(404);
  });

  test('more sessions or open jobs than allowed are 429, for this user alone', async () => {
    const erin = await addUser('erin');
    const first = await openSession(erin, sshd);
    for (const _ of [2, 3, 4]) await openSession(erin, sshd);
    const credential = { username: sshd.username, privateKey: sshd.privateKey };
    const fifth = await send(erin, 'POST', '/api/remotes', { hostname: 'host', ...credential });
    expect(fifth.headers.get('Retry-After')).toBe('60');
    await expectProblem(fifth, 429, 'too_many_requests');
    await openSession(bob, sshd);
    await erin.delete(`/api/remotes/${first}`);
    const session = await openSession(erin, sshd);

    const ids = await Promise.all([1, 2, 3].map(() => launchAsync(erin, session, 'sleep 60')));
    const fourth = await send(erin, 'POST', '/api/remotes/launch', {
      sid: session,
      command: 'true',
    });
    expect(fourth.headers.get('Retry-After')).toBe('10');
    await expectProblem(fourth, 429, 'too_many_requests');
    await erin.delete(`/api/jobs/${ids[0]?.id}`);
    await waitForEnd(erin, ids[0]?.id ?? '');
    const { output } = await erin.post<{ output: string }>('/api/remotes/launch', {
      sid: session,
      command: 'echo room',
    });
    expect(output).toBe('room\n');
  });

  test('of two administrators who remove each other at once one stays, however they do it', async () => {
    const remove = (who: Client, whom: string) => send(who, 'DELETE', `/api/users/${whom}`);
    const demote = (who: Client, whom: string) =>
      send(who, 'PUT', `/api/users/${whom}`, { administrator: false });
    const removed = [204, 401];
    const demoted = [200, 403];
    for (const { first, second, ends } of [
      { first: remove, second: remove, ends: [removed] },
      { first: demote, second: demote, ends: [demoted] },
      { first: demote, second: remove, ends: [demoted, removed] },
    ]) {
      const names = ['ruler-a', 'ruler-b'] as const;
      for (const username of names)
        await admin.post('/api/users', { username, password: PASSWORD, administrator: true });
      const [a, b] = [
        new Client(stack.url, names[0], PASSWORD),
        new Client(stack.url, names[1], PASSWORD),
      ];
      const answers = await whileLocked(
        stack,
        sql => sql`select 1 from users where username in ${sql([...names])} for update`,
        () => [first(a, names[1]), second(b, names[0])],
      );
      expect(ends).toContainEqual(answers.map(({ status }) => status).toSorted());
      const rulers = [];
      for (const name of names) {
        const found = await admin.fetch(`/api/users/${name}`);
        const { administrator } = (await found.json()) as { administrator?: boolean };
        if (administrator) rulers.push(name);
        await admin.fetch(`/api/users/${name}`, { method: 'DELETE' });
      }
      expect(rulers).toHaveLength(1);
    }
  });
});

describeUnless(missingPrograms('sshd'), 'a session that nobody uses', () => {
  test('is over at the moment it said; a job in it, or a file that is sent there, puts that off', async () => {
    const [stack, sshd] = await Promise.all([
      startStack({ env: { SESSION_IDLE_TIMEOUT: '4' } }),
      startTestSshd(),
    ]);
    try {
      const client = connectClient(stack);
      await addHost(client, sshd);
      const sid = await openSession(client, sshd);
      const at = `/api/remotes/${sid}`;
      const { expires: first } = await client.get<{ expires: string }>(at);
      const { output } = await client.post<{ output: string }>('/api/remotes/launch', {
        sid,
        command: 'sleep 5; echo still here',
      });
      expect(output).toBe('still here\n');
      const { expires: next } = await client.get<{ expires: string }>(at);
      expect(Date.parse(next)).toBeGreaterThan(Date.parse(first) + 2_000);
      const path = join(sshd.home, 'slow');
      const written = await client.fetch(`${at}/file${path}`, {
        method: 'PUT',
        headers: { 'Content-Type': 'application/octet-stream' },
        body: ReadableStream.from(sendUntil(Date.parse(next) + 1_000)),
        duplex: 'half',
      });
      expect([written.status, readFileSync(path, 'utf8')]).toEqual([
        201,
        expect.stringMatching(/^a+$/),
      ]);
      const { expires } = await client.get<{ expires: string }>(at);
      // Upkeep can end nothing now: it is the API alone that must know.
      stack.kill('windlass-worker', 'SIGSTOP');
      const seen = await waitFor(
        async () => ((await client.fetch(at)).status === 404 ? Date.now() : undefined),
        { what: 'the session to end' },
      );
      expect(seen).toBeGreaterThanOrEqual(Date.parse(expires));
      expect(await client.get('/api/remotes')).toEqual({ items: [], next: null });
      const launched = await client.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, command: 'true' }),
      });
      await expectProblem(launched, 404, 'session_not_found');
    } finally {
      stack.kill('windlass-worker', 'SIGCONT');
      await stack.stop();
      await sshd.stop();
    }
  });
});

/** A byte each tenth of a second. */
async function* sendUntil(end: number): AsyncGenerator<Uint8Array> {
  while (Date.now() < end) {
    yield utf8('a');
    await delay(100);
  }
}
