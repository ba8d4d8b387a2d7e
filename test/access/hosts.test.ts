import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { addHost, openSession } from '../harness/hosts/remote.ts';
import { fingerprintOf, startRecordingServer } from '../harness/servers/recording-server.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'open sesame';

describeStack(missingPrograms('sshd'), 'which hosts are connected to, and how', form => {
  const directory = makeTempDir('access');
  afterAll(() => directory.remove());
  const serverKey = loadOrCreateKeyPair(join(directory.path, 'server_key'));
  const server = useStarted(() =>
    startRecordingServer({ hostKey: serverKey.private, password: PASSWORD }),
  );
  const { stack, client, sshd } = useRemoteStack(form, {
    env: { LIMIT_SESSIONS: '3', LIMIT_REFUSED_LOGINS: '0' },
  });

  beforeAll(async () => {
    await client.post('/api/hosts', {
      name: 'recording',
      address: '127.0.0.1',
      port: server.port,
      keys: [serverKey.public],
      agent: false,
      private: true,
    });
  });

  const send = (method: string, path: string, body: unknown) =>
    client.fetch(path, { method, body: JSON.stringify(body) });
  const open = (hostname: string, more: object = {}) =>
    send('POST', '/api/remotes', { hostname, username: 'someone', password: PASSWORD, ...more });

  test('a wrong password is 403; refused logins use up no session of the limit', async () => {
    for (const wrong of ['no', 'nope', 'never', '']) {
      await expectProblem(
        await open('recording', { password: wrong }),
        403,
        'remote_authentication_failed',
      );
    }
    const passwords = server.attempts.flatMap(({ password }) => password ?? []);
    expect(passwords).toEqual(['no', 'nope', 'never', '']);
    const response = await open('recording');
    expect(response.status).toBe(200);
    const { sid } = (await response.json()) as { sid: string };
    expect(response.headers.get('Location')).toBe(`/api/remotes/${sid}`);
    await client.delete(`/api/remotes/${sid}`);
  });

  test('a host whose key is not the pinned one is 409, and is sent not one byte of a credential', async () => {
    const pinned = loadOrCreateKeyPair(join(directory.path, 'other_key')).public;
    await client.post('/api/hosts', {
      name: 'changed',
      address: '127.0.0.1',
      port: server.port,
      keys: [pinned],
      agent: false,
      private: true,
    });
    const { connections } = server;
    const attempts = server.attempts.length;
    for (const credential of [
      { password: PASSWORD },
      { password: undefined, privateKey: sshd.privateKey },
    ]) {
      const problem = await expectProblem(
        await open('changed', credential),
        409,
        'host_key_changed',
      );
      expect(problem.detail).toContain(fingerprintOf(pinned));
      expect(problem.detail).toContain(fingerprintOf(serverKey.public));
    }
    expect(server.connections).toBe(connections + 2);
    expect(server.attempts).toHaveLength(attempts);

    // The administrator looks at the new key, and pins it.
    const put = await send('PUT', '/api/hosts/changed', { trust: 'now' });
    expect(await put.json()).toMatchObject({
      keys: [serverKey.public],
      fingerprints: [fingerprintOf(serverKey.public)],
    });
    expect(server.attempts).toHaveLength(attempts);
    const opened = await open('changed');
    expect(opened.status).toBe(200);
    await client.delete(`/api/remotes/${((await opened.json()) as { sid: string }).sid}`);
  });

  test('a host that shows a key of another type than the pinned one has changed too', async () => {
    const pinned = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }).public;
    await client.post('/api/hosts', {
      name: 'other-type',
      address: '127.0.0.1',
      port: server.port,
      keys: [pinned],
      agent: false,
      private: true,
    });
    const attempts = server.attempts.length;
    const problem = await expectProblem(await open('other-type'), 409, 'host_key_changed');
    expect(problem.detail).toContain(fingerprintOf(pinned));
    expect(problem.detail).toContain(fingerprintOf(serverKey.public));
    expect(server.attempts).toHaveLength(attempts);
  });

  test('hosts that are not listed, and other ports of those that are, are 403', async () => {
    for (const [hostname, more] of [
      ['127.0.0.1', {}],
      ['nowhere.example', {}],
      ['HOST', {}],
      ['host', { port: sshd.port + 1 }],
    ] as const) {
      await expectProblem(await open(hostname, more), 403, 'host_not_allowed');
    }
    const named = await open('recording', { port: server.port });
    expect(named.status).toBe(200);
    await client.delete(`/api/remotes/${((await named.json()) as { sid: string }).sid}`);
  });

  test('an inner address is refused unless the entry grants it, however it is written', async () => {
    const { connections } = server;
    const addresses = ['127.0.0.1', 'localhost', '2130706433', '0', '::1', '::ffff:127.0.0.1'];
    for (const [n, address] of addresses.entries()) {
      const host = { name: `inner${n}`, address, port: server.port };
      await client.post('/api/hosts', { ...host, keys: [serverKey.public], agent: false });
      await expectProblem(await open(host.name), 403, 'host_not_allowed');
      const scanned = await send('POST', '/api/hosts', {
        ...host,
        name: `trusted${n}`,
        trust: 'now',
      });
      await expectProblem(scanned, 403, 'host_not_allowed');
      expect((await client.fetch(`/api/hosts/trusted${n}`)).status).toBe(404);
    }
    expect(server.connections).toBe(connections);
    expect((await send('PUT', '/api/hosts/inner0', { private: true })).status).toBe(200);
    const opened = await open('inner0');
    expect(opened.status).toBe(200);
    await client.delete(`/api/remotes/${((await opened.json()) as { sid: string }).sid}`);
  });

  test('trust: "now" pins what is shown, and says so', async () => {
    const response = await send('POST', '/api/hosts', {
      name: 'trusted',
      address: '127.0.0.1',
      port: sshd.port,
      trust: 'now',
      private: true,
    });
    const host = (await response.json()) as { keys: string[]; fingerprints: string[] };
    expect([response.status, response.headers.get('Location')]).toEqual([
      201,
      '/api/hosts/trusted',
    ]);
    expect(host.keys).toEqual([sshd.hostKey]);
    expect(host.fingerprints).toEqual([fingerprintOf(sshd.hostKey)]);
    const sid = await openSession(client, sshd, { hostname: 'trusted' });
    await client.delete(`/api/remotes/${sid}`);
    const silent = await send('POST', '/api/hosts', {
      name: 'silent',
      address: '127.0.0.1',
      port: await findFreePort(),
      trust: 'now',
      private: true,
    });
    await expectProblem(silent, 500, 'remote_connection_failed');
    expect((await client.fetch('/api/hosts/silent')).status).toBe(404);
  });

  test('trust: "now" with an Idempotency-Key is answered again as it was', async () => {
    const add = (name: string, more: object = {}) =>
      client.fetch('/api/hosts', {
        method: 'POST',
        headers: { 'Idempotency-Key': `add-${name}` },
        body: JSON.stringify({
          name,
          address: '127.0.0.1',
          port: sshd.port,
          trust: 'now',
          private: true,
          ...more,
        }),
      });
    const first = await add('repeated');
    expect(first.status).toBe(201);
    const record = await first.json();
    const again = await add('repeated');
    expect([again.status, again.headers.get('Location'), await again.json()]).toEqual([
      201,
      '/api/hosts/repeated',
      record,
    ]);
    await expectProblem(await add('repeated', { agent: false }), 409, 'idempotency_conflict');
    // It is no longer what was asked for.
    expect((await send('PUT', '/api/hosts/repeated', { agent: false })).status).toBe(200);
    await expectProblem(await add('repeated'), 409, 'conflict');
    // Nor is another's what this key has made.
    await addHost(client, sshd, { name: 'taken' });
    await expectProblem(await add('taken'), 409, 'conflict');
  });

  test('trust: "now" pins nothing where its client left before the keys were shown', async () => {
    const mute = createServer(socket => socket.on('error', () => {}).resume());
    await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = mute.address() as AddressInfo;
      const at = { address: '127.0.0.1', port, private: true, trust: 'now' };
      await addHost(client, sshd, { name: 'left' });
      const { keys } = await client.get<{ keys: string[] }>('/api/hosts/left');
      for (const [method, path, body] of [
        ['POST', '/api/hosts', { name: 'unseen', ...at }],
        ['PUT', '/api/hosts/left', at],
      ] as const) {
        const connected = once(mute, 'connection');
        const leave = new AbortController();
        const asked = client.fetch(path, {
          method,
          body: JSON.stringify(body),
          signal: leave.signal,
        });
        const [socket] = (await connected) as [Socket];
        leave.abort();
        await expect(asked).rejects.toThrow();
        // The job is told to end, and whatever was to be written has been soon after.
        await once(socket, 'close');
      }
      expect((await send('POST', '/api/hosts', { name: 'unseen', keys })).status).toBe(201);
      expect(await client.get('/api/hosts/left')).toMatchObject({ keys, port: sshd.port });
    } finally {
      mute.close();
    }
  });

  test('the list goes on after a name of any length that a host may have', async () => {
    const names = ['0a', '0b'].map(name => name.padEnd(253, '-'));
    for (const name of names)
      await client.post('/api/hosts', { name, address: 'x.example', keys: [serverKey.public] });
    const { next } = await client.get<{ next: string }>('/api/hosts?limit=1');
    expect(next).toBe(names[0]);
    const { items } = await client.get<{ items: { name: string }[] }>(
      `/api/hosts?limit=1&after=${next}`,
    );
    expect(items.map(({ name }) => name)).toEqual([names[1]]);
    await expectProblem(
      await client.fetch(`/api/hosts?after=${'a'.repeat(254)}`),
      400,
      'invalid_input',
    );
    for (const name of names) await client.delete(`/api/hosts/${name}`);
  });

  test('agent: what the host is set up for, unless the session says no', async () => {
    const agentOf = async (hostname: string, agent?: boolean) => {
      const { sid } = await client.post<{ sid: string }>('/api/remotes', {
        hostname,
        username: sshd.username,
        privateKey: sshd.privateKey,
        ...(agent === undefined ? {} : { agent }),
      });
      const session = await client.get<{ agent: boolean }>(`/api/remotes/${sid}`);
      await client.delete(`/api/remotes/${sid}`);
      return session.agent;
    };
    await addHost(client, sshd, { name: 'plain', agent: false });
    expect(await agentOf('host')).toBe(true);
    expect(await agentOf('host', false)).toBe(false);
    expect(await agentOf('plain')).toBe(false);
    expect(await agentOf('plain', false)).toBe(false);
    const problem = await expectProblem(await open('plain', { agent: true }), 400, 'missing_agent');
    expect(problem.title).toBe('Missing agent configuration.');
    expect(problem.detail).toMatch(/^Missing agent configuration\b/);
  });

  test('with a host go the credentials that were kept for it: a later one of its name is another', async () => {
    const add = () => addHost(client, sshd, { name: 'passing' });
    await add();
    const sid = await openSession(client, sshd, { hostname: 'passing' });
    await client.post('/api/remotes/launch', { sid, command: 'true' });
    const sql = openStackDatabase(stack);
    try {
      const isKept = async () => {
        const [row] = await sql`select sealed is not null as kept from sessions where sid = ${sid}`;
        return row?.kept;
      };
      // As long as its run is not removed.
      await sql`update jobs set run_at = now(), run_removed = false, finished = now() + interval '1 hour' where session = ${sid}`;
      await client.delete(`/api/remotes/${sid}`);
      expect(await isKept()).toBe(true);
      await client.delete('/api/hosts/passing');
      await add();
      expect(await isKept()).toBe(false);
    } finally {
      await sql.end();
    }
  });

  test('a session that has timed out counts no more and does not keep its host, before upkeep has ended it', async () => {
    await client.post('/api/users', { username: 'gina', password: PASSWORD });
    const gina = new Client(stack.url, 'gina', PASSWORD);
    const entry = { address: '127.0.0.1', port: server.port, keys: [serverKey.public] };
    await client.post('/api/hosts', { ...entry, name: 'timed-out', agent: false, private: true });
    const login = { hostname: 'timed-out', username: 'someone', password: PASSWORD };
    const sql = openStackDatabase(stack);
    try {
      const letTimeOut = () => sql`
        with old as (
          update sessions set accessed = now() - interval '1 year' where owner = 'gina' returning sid
        )
        update jobs set finished = now() - interval '1 year' where session in (select sid from old)`;
      for (let i = 0; i < 3; i++) await gina.post('/api/remotes', login);
      const body = JSON.stringify(login);
      const fourth = await gina.fetch('/api/remotes', { method: 'POST', body });
      const { hint } = await expectProblem(fourth, 429, 'too_many_requests');
      expect(hint).toContain('LIMIT_SESSIONS');
      await letTimeOut();
      const opened = { sid: expect.any(String) };
      await expect(gina.post('/api/remotes', login)).resolves.toMatchObject(opened);
      await letTimeOut();
      await expect(client.delete('/api/hosts/timed-out')).resolves.toBeUndefined();
    } finally {
      await sql.end();
    }
  });

  test('what an entry does not allow any more is not done over a connection from before', async () => {
    const { port } = server;
    const entry = { address: '127.0.0.1', port, keys: [serverKey.public], private: true };
    await client.post('/api/hosts', { ...entry, name: 'narrowed', agent: false });
    const { sid } = (await (await open('narrowed')).json()) as { sid: string };
    const launch = async () => {
      const response = await send('POST', '/api/remotes/launch', { sid, command: 'true' });
      const { code } = (await response.json()) as { code?: string };
      return code ?? 'done';
    };
    expect(await launch()).toBe('done');
    await send('PUT', '/api/hosts/narrowed', { private: false });
    const refusal = 'host_not_allowed';
    await waitFor(async () => (await launch()) === refusal, { what: refusal, intervalMs: 200 });
    await send('PUT', '/api/hosts/narrowed', entry);
    await waitFor(async () => (await launch()) === 'done', { what: 'a connection' });
    await client.delete(`/api/remotes/${sid}`);
  });

  test('of sessions that are opened at once no more are than may be', async () => {
    await client.post('/api/users', { username: 'frank', password: PASSWORD });
    const frank = new Client(stack.url, 'frank', PASSWORD);
    const { username, privateKey } = sshd;
    const body = JSON.stringify({ hostname: 'host', username, privateKey });
    const [holder, watcher] = [openStackDatabase(stack), openStackDatabase(stack)];
    try {
      await holder`begin`;
      // It can be counted meanwhile, and not added to.
      await holder`lock table sessions in share mode`;
      const asked = [1, 2, 3, 4, 5, 6].map(() =>
        frank.fetch('/api/remotes', { method: 'POST', body }),
      );
      await waitFor(
        async () => {
          const waiting = await watcher`
            select 1 from pg_stat_activity where wait_event_type = 'Lock'
              and query ~ '^(select.*"users".* for |insert into "sessions")'`;
          return waiting.length >= asked.length;
        },
        { what: 'the requests to wait' },
      );
      await holder`commit`;
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      expect(statuses.toSorted()).toEqual([200, 200, 200, 429, 429, 429]);
    } finally {
      await Promise.all([holder.end(), watcher.end()]);
    }
  });

  test('a session is not left on a host that is removed just then', async () => {
    await addHost(client, sshd, { name: 'going' });
    const answers = await whileLocked(
      stack,
      sql => sql`delete from hosts where name = 'going'`,
      () => [open('going')],
    );
    for (const answer of answers) await expectProblem(answer, 403, 'host_not_allowed');
    await addHost(client, sshd, { name: 'going' });
    await client.delete('/api/hosts/going');
  });
});
