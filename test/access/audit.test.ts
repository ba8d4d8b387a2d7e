import { createHash } from 'node:crypto';
import { type RequestOptions, request } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { AuditEntry } from '../../shared/audit/audit.ts';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { newId } from '../../shared/ids.ts';
import { logIn, sendLogin } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUser, PASSWORD } from '../harness/clients/users.ts';
import { stackDatabaseUrl } from '../harness/databases/database.ts';
import { launchAsync, openSession } from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const WINDLASS = 'dist/cli/main.js';

/** An entry as GET /audit shows it. */
type Entry = Omit<AuditEntry, 'time'> & { time: string; hash: string | null };
interface Page {
  items: Entry[];
  next: string | null;
}

describeStack(missingPrograms('sshd'), 'the audit', form => {
  const {
    stack,
    client: admin,
    sshd,
  } = useRemoteStack(form, {
    env: { LIMIT_REQUESTS: '0', AUDIT_RETENTION_DAYS: '30' },
    alone: 'reads all that was ever told',
  });
  const database = useStackDatabase(stack);

  const read = (query = '') => admin.get<Page>(`/api/audit?${query}`);
  const named = (sid: string, host = 'host') => `${sid} ${sshd.username}@${host}`;
  /** From the first on, once all are chained. */
  const readAll = async () => {
    await waitFor(async () => (await database`select from audit_pending`).length === 0, {
      what: 'the end of the chain',
    });
    const items: Entry[] = [];
    for (let after = '0'; ; ) {
      const page = await read(`limit=1000&after=${after}`);
      items.push(...page.items);
      if (page.next === null) return items;
      after = page.next;
    }
  };
  const verify = (settings: Record<string, string>) =>
    startProgram({ args: [WINDLASS, 'audit', 'verify'], settings, cwd: stack.dataDir }).ended;
  const byUrl = () => ({ DATABASE_URL: stackDatabaseUrl(stack) });

  test('tells who did what, from where, and with which request', async () => {
    const { username, client } = await addUser(admin);
    const login = await logIn(stack, { username, password: PASSWORD });
    const made = await client.fetch('/api/users/-/tokens', {
      method: 'POST',
      headers: { 'X-Request-Id': 'the-request' },
      body: JSON.stringify({ name: 'a program', scope: 'read' }),
    });
    const { id: token } = (await made.json()) as { id: string };
    const sid = await openSession(client, sshd, { agent: false });
    const command = 'echo a secret';
    const { id: launched } = await launchAsync(client, sid, command);
    const { requestId } = await client.get<{ requestId: string }>(`/api/jobs/${launched}`);
    await launchAsync(client, sid, 'sleep 600').then(({ id }) =>
      client.fetch(`/api/jobs/${id}`, { method: 'DELETE' }),
    );
    await client.delete(`/api/remotes/${sid}`);
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'one' });
    await client.fetch(`/api/projects/${pid}`, {
      method: 'PUT',
      body: JSON.stringify({ acl: { readers: [{ user: stack.username }] } }),
    });
    await client.delete(`/api/users/-/tokens/${token}`);
    await login.fetch('/api/logout', { method: 'DELETE' });
    await client.fetch(`/api/users/${username}`, {
      method: 'PUT',
      body: JSON.stringify({ password: 'another password', current: PASSWORD }),
    });

    const entries = (await readAll()).filter(entry => entry.user === username);
    const digest = (text: string) => createHash('sha256').update(text).digest('hex');
    expect(entries.map(({ action, target, outcome }) => [action, target, outcome])).toEqual([
      ['login', null, 'ok'],
      ['token.create', token, 'ok'],
      ['session.open', named(sid), 'ok'],
      ['command', digest(command), 'ok'],
      ['command', digest('sleep 600'), 'ok'],
      ['job.cancel', expect.any(String), 'ok'],
      ['session.close', named(sid), 'ok'],
      ['project.acl', pid, 'ok'],
      ['token.delete', token, 'ok'],
      ['logout', null, 'ok'],
      ['password', username, 'ok'],
    ]);
    expect(entries[3]).toMatchObject({ action: 'command', requestId });
    expect(entries[1]).toMatchObject({ address: '127.0.0.1', requestId: 'the-request' });
    for (const { time, requestId } of entries) {
      expect(Math.abs(Date.parse(time) - Date.now())).toBeLessThan(300_000);
      expect(requestId).toBeTruthy();
    }

    await admin.fetch(`/api/users/${username}`, { method: 'PUT', body: '{"disabled":true}' });
    await admin.delete(`/api/users/${username}`);
    await admin.fetch('/api/hosts/host', { method: 'PUT', body: '{"agent":true}' });
    await admin.post('/api/hosts', { name: 'another', keys: [sshd.hostKey] });
    await admin.delete('/api/hosts/another');
    const { items: workers } = await admin.get<{ items: { id: string }[] }>('/api/workers');
    const drained = workers[0]?.id ?? '';
    for (const draining of [true, false])
      await admin.fetch(`/api/workers/${drained}`, {
        method: 'PUT',
        body: JSON.stringify({ draining }),
      });
    const administrative = (await readAll()).filter(entry => entry.user === stack.username);
    expect(administrative.slice(-8).map(({ action, target }) => [action, target])).toEqual([
      ['user.disable', username],
      ['user.delete', username],
      ['project.acl', pid],
      ['host.update', 'host'],
      ['host.create', 'another'],
      ['host.delete', 'another'],
      ['worker', `${drained} drain`],
      ['worker', `${drained} resume`],
    ]);
    expect(JSON.stringify(await readAll())).not.toContain(PASSWORD);
  });

  test('tells what ends, and who gets rights, beside the change itself', async () => {
    const first = { target: stack.username, user: null, outcome: 'ok' };
    expect((await readAll()).slice(0, 2)).toMatchObject([
      { ...first, action: 'user.create' },
      { ...first, action: 'user.promote' },
    ]);
    const { username, client } = await addUser(admin);
    const { username: heir } = await addUser(admin);
    const acl = { writers: [{ user: heir }] };
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'left', acl });
    const { id: token } = await client.post<{ id: string }>('/api/users/-/tokens', {
      name: 'a program',
      scope: 'read',
    });
    const { id: webhook } = await client.post<{ id: string }>('/api/webhooks', {
      url: 'https://192.0.2.1/ends',
    });
    const users = [username, heir];
    await admin.post('/api/hosts', { name: 'theirs', keys: [sshd.hostKey], users });
    const sid = await openSession(client, sshd, { agent: false });
    const before = (await readAll()).length;
    await admin.delete(`/api/users/${username}`);
    const told = (await readAll()).slice(before).map(({ action, target }) => [action, target]);
    expect(told.sort()).toEqual(
      [
        ['user.delete', username],
        ['token.delete', token],
        ['webhook.delete', webhook],
        ['session.close', named(sid)],
        ['host.update', 'theirs'],
        ['project.acl', pid],
      ].sort(),
    );
    await admin.delete('/api/hosts/theirs');
  });

  test('tells of files that are written to a host and removed from it, by a digest of their path', async () => {
    const { username, client } = await addUser(admin);
    const sid = await openSession(client, sshd, { agent: false });
    const path = join(sshd.home, newId());
    const digest = createHash('sha256').update(path).digest('hex');
    const send = async (method: string, id: string, key?: string) => {
      const { status } = await client.fetch(`/api/remotes/${sid}/file${path}`, {
        method,
        headers: { 'X-Request-Id': id, ...(key && { 'Idempotency-Key': key }) },
        ...(method === 'PUT' && { body: 'ssh-ed25519' }),
      });
      return status;
    };
    expect(await send('PUT', 'writes')).toBe(201);
    expect(await send('DELETE', 'removes')).toBe(204);
    expect(await send('PUT', 'writes-once', 'one')).toBe(201);
    expect(await send('PUT', 'repeats', 'one')).toBe(201);
    expect(await send('DELETE', 'removes-once', 'two')).toBe(204);
    expect(await send('DELETE', 'repeats', 'two')).toBe(204);
    const told = (await readAll()).filter(
      ({ user, action }) => user === username && action.startsWith('file.'),
    );
    const from = { target: digest, address: '127.0.0.1', outcome: 'ok' };
    expect(told).toMatchObject([
      { ...from, action: 'file.write', requestId: 'writes' },
      { ...from, action: 'file.remove', requestId: 'removes' },
      { ...from, action: 'file.write', requestId: 'writes-once' },
      { ...from, action: 'file.remove', requestId: 'removes-once' },
    ]);
  });

  test('tells of projects that are deleted, and of those that are with their last member', async () => {
    const { username, client } = await addUser(admin);
    const make = () => client.post<{ id: string }>('/api/projects', { name: 'gone' });
    const [deleted, emptied] = [await make(), await make()];
    await client.delete(`/api/projects/${deleted.id}`);
    await admin.delete(`/api/users/${username}`);
    const told = (await readAll()).filter(({ action }) => action === 'project.delete');
    expect(told.slice(-2)).toMatchObject([
      { target: deleted.id, user: username },
      { target: emptied.id, user: stack.username },
    ]);
  });

  test('tells which rights a user gets and loses', async () => {
    const { username } = await addUser(admin);
    const change = async (rights: object) => {
      const body = JSON.stringify(rights);
      const { status } = await admin.fetch(`/api/users/${username}`, { method: 'PUT', body });
      expect(status).toBe(200);
    };
    await change({ administrator: true });
    await change({ administrator: false });
    await change({ disabled: true });
    await change({ administrator: true, disabled: false });
    const told = (await readAll()).filter(({ target }) => target === username);
    expect(told.map(({ action }) => action)).toEqual([
      'user.create',
      'user.promote',
      'user.demote',
      'user.disable',
      'user.promote',
      'user.enable',
    ]);
    const { items } = await read('action=user.update&limit=1000');
    expect(items.filter(({ target }) => target === username)).toEqual(told.slice(1));
  });

  test('tells of sessions that a change of their host ends, once', async () => {
    const { client } = await addUser(admin);
    const { address, port } = await admin.get<{ address: string; port: number }>('/api/hosts/host');
    const place = { address, port, private: true, keys: [sshd.hostKey] };
    await admin.post('/api/hosts', { name: 'moved', ...place });
    const sid = await openSession(client, sshd, { agent: false, hostname: 'moved' });
    await admin.fetch('/api/hosts/moved', { method: 'PUT', body: JSON.stringify({ port: 1 }) });
    await client.delete(`/api/remotes/${sid}`);
    const closed = (await readAll()).filter(({ target }) => target === named(sid, 'moved'));
    expect(closed.map(({ action, user }) => [action, user === stack.username])).toEqual([
      ['session.open', false],
      ['session.close', true],
    ]);
    await admin.delete('/api/hosts/moved');
  });

  test('is a chain that anybody can check', async () => {
    const { username } = await addUser(admin);
    const [pending] = (await read(`user=${stack.username}&limit=1000`)).items.slice(-1);
    expect(pending).toMatchObject({ action: 'user.create', target: username });
    let previous = '0'.repeat(64);
    for (const [n, { hash, ...told }] of (await readAll()).entries()) {
      expect(told.seq).toBe(n + 1);
      previous = createHash('sha256')
        .update(`${previous}\n${JSON.stringify(told)}`)
        .digest('hex');
      expect(hash).toBe(previous);
    }
    expect(Object.keys(pending ?? {})).toEqual([
      'seq',
      'time',
      'user',
      'address',
      'action',
      'target',
      'outcome',
      'requestId',
      'hash',
    ]);
  });

  test('is filtered by exact matches, and listed in pages', async () => {
    const { username } = await addUser(admin);
    await addUser(admin);
    await readAll();
    const since = new Date().toISOString();
    const { username: later } = await addUser(admin);
    const all = await readAll();
    const created = all.filter(({ action }) => action === 'user.create');
    expect((await read('action=user.create&limit=1000')).items).toEqual(created);
    expect((await read(`since=${since}`)).items.map(({ target }) => target)).toEqual([later]);
    expect((await read('user=nobody')).items).toEqual([]);
    expect((await read(`user=${username}`)).items).toEqual([]);
    const first = await read('limit=2');
    expect([first.items, first.next]).toEqual([all.slice(0, 2), '2']);
    const newest = await read('order=newest&limit=2');
    expect(newest.items).toEqual(all.toReversed().slice(0, 2));
    const before = await read(`order=newest&limit=1000&after=${newest.next}`);
    expect(before.items).toEqual(all.toReversed().slice(2, 1_002));
    expect((await read(`order=newest&since=${since}`)).items.map(({ target }) => target)).toEqual([
      later,
    ]);
    expect((await admin.fetch('/api/audit?since=2026-01-01T00:00:00%2B23:36')).status).toBe(200);
    for (const query of ['action=all', 'since=today', 'after=x', 'after=-1', 'more=1'])
      await expectProblem(await admin.fetch(`/api/audit?${query}`), 400, 'invalid_input');
  });

  test('a login that the host refuses opens nothing, and a session that ends with its user is closed', async () => {
    const { username, client } = await addUser(admin);
    const refused = await client.fetch('/api/remotes', {
      method: 'POST',
      body: JSON.stringify({ hostname: 'host', username: sshd.username, password: 'wrong' }),
    });
    await expectProblem(refused, 403, 'remote_authentication_failed');
    const sid = await openSession(client, sshd, { agent: false });
    await admin.fetch(`/api/users/${username}`, { method: 'PUT', body: '{"disabled":true}' });
    const told = (await readAll()).filter(({ action }) => action.startsWith('session.'));
    const from = { user: username, address: '127.0.0.1', requestId: expect.any(String) };
    expect(told.slice(-3)).toMatchObject([
      {
        ...from,
        action: 'session.open',
        outcome: 'refused',
        target: expect.stringMatching(named('\\S+')),
      },
      { ...from, action: 'session.open', outcome: 'ok', target: named(sid) },
      { action: 'session.close', user: stack.username, target: named(sid) },
    ]);
  });

  test('a logout is told of whose login it ends, whoever else sends it or logs in instead', async () => {
    const [alice, bob] = [await addUser(admin), await addUser(admin)];
    const cookieOf = async () => {
      const { cookies } = await logIn(stack, bob.login);
      return { Cookie: `serviceauth=${cookies.get('serviceauth')}` };
    };
    const headers = await cookieOf();
    for (let n = 0; n < 2; n++) await admin.fetch('/api/logout', { method: 'DELETE', headers });
    expect((await sendLogin(stack.url, alice.login, await cookieOf())).status).toBe(200);
    // Of a login that has ended already nothing is told.
    const old = await cookieOf();
    await database`update logins set expires = now() where username = ${bob.username}`;
    await sendLogin(stack.url, alice.login, old);
    const told = (await readAll())
      .filter(({ action }) => ['login', 'logout'].includes(action))
      .map(({ action, user }) => [action, user]);
    expect(told.slice(-7)).toEqual([
      ['login', bob.username],
      ['logout', bob.username],
      ['login', bob.username],
      ['logout', bob.username],
      ['login', alice.username],
      ['login', bob.username],
      ['login', alice.username],
    ]);
  });

  test('what changes nothing is not told: a second cancellation, rights that a user has', async () => {
    const { username, client } = await addUser(admin);
    const login = await logIn(stack, { username, password: PASSWORD });
    const id = newId();
    // A worker had it, and no other takes it.
    await database`insert into jobs (id, kind, queue, owner, payload, state, not_before, run_at)
      values (${id}, 'command', 'remote', ${username}, '{}', 'running', 'infinity', now())`;
    for (let n = 0; n < 2; n++)
      expect((await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' })).status).toBe(202);
    await database`update jobs set state = 'cancelled', finished = now() where id = ${id}`;
    for (const body of ['{"disabled":false}', '{"administrator":false}']) {
      const kept = await admin.fetch(`/api/users/${username}`, { method: 'PUT', body });
      expect([kept.status, await kept.json()]).toMatchObject([200, { username, disabled: false }]);
    }
    expect((await login.fetch('/api/users/-')).status).toBe(200);
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'shared' });
    const body = JSON.stringify({ acl: { readers: [{ user: stack.username }] } });
    for (let n = 0; n < 2; n++)
      expect((await client.fetch(`/api/projects/${pid}`, { method: 'PUT', body })).status).toBe(
        200,
      );
    const targets = [id, username, pid];
    const told = (await readAll()).filter(({ target }) => targets.includes(target ?? ''));
    expect(told.map(({ action }) => action)).toEqual(['user.create', 'job.cancel', 'project.acl']);
  });

  test("an administrator who removes another user's job is told of, and its owner is not", async () => {
    const { username, client } = await addUser(admin);
    const [own, others] = [newId(), newId()];
    await database`insert into jobs (id, kind, queue, owner, payload, state, finished)
      select id, 'command', 'remote', ${username}, '{}', 'cancelled', now()
      from unnest(${[own, others]}::text[]) id`;
    await client.delete(`/api/jobs/${own}/record`);
    await admin.delete(`/api/jobs/${others}/record`);
    const told = (await readAll()).filter(({ target }) => [own, others].includes(target ?? ''));
    expect(told).toMatchObject([{ action: 'job.remove', target: others, user: stack.username }]);
  });

  test('a project that is made for others tells whose rights it gives', async () => {
    const { username } = await addUser(admin);
    const acl = { readers: [{ user: username }] };
    const { id } = await admin.post<{ id: string }>('/api/projects', { name: 'theirs', acl });
    expect((await readAll()).at(-1)).toMatchObject({ action: 'project.acl', target: id });
  });

  test('an entry and what it tells are one: neither is there without the other', async () => {
    await database`alter table audit_pending add constraint none check (action <> 'user.create')`;
    try {
      const response = await admin.fetch('/api/users', {
        method: 'POST',
        body: JSON.stringify({ username: 'untold', password: PASSWORD }),
      });
      expect(response.status).toBe(500);
      expect((await admin.fetch('/api/users/untold')).status).toBe(404);
    } finally {
      await database`alter table audit_pending drop constraint none`;
    }
    const { username } = await addUser(admin);
    const again = { username, password: PASSWORD };
    const refused = await admin.fetch('/api/users', {
      method: 'POST',
      body: JSON.stringify(again),
    });
    await expectProblem(refused, 409, 'conflict');
    const told = (await readAll()).filter(({ target }) => target === username);
    expect(told.map(({ action }) => action)).toEqual(['user.create']);
  });

  test('tells refused logins once a minute for an account and an address', async () => {
    const { username, client } = await addUser(admin);
    const wrong = () =>
      sendLogin(stack.url, { username, password: `wrong ${Math.random()}` }).then(
        ({ status }) => status,
      );
    const refusals = async () =>
      (await readAll()).filter(entry => entry.user === username && entry.outcome === 'refused');
    expect(await Promise.all([wrong(), wrong(), wrong()])).toEqual([401, 401, 401]);
    expect(await refusals()).toMatchObject([
      { action: 'login', target: null, address: '127.0.0.1', requestId: expect.any(String) },
    ]);
    const { username: other, client: asOther } = await addUser(admin);
    await asOther.fetch(`/api/users/${other}`, {
      method: 'PUT',
      body: JSON.stringify({ password: 'another password', current: 'a wrong one' }),
    });
    const [last] = (await readAll()).slice(-1);
    expect(last).toMatchObject({ user: other, action: 'password', outcome: 'refused' });
    await client.fetch('/api/users/-');
    expect(await refusals()).toHaveLength(1);
  });

  test('tells of a right password that is sent as Basic, once for an address', async () => {
    const { username } = await addUser(admin);
    const ask = async (password: string) => {
      const Authorization = `Basic ${btoa(`${username}:${password}`)}`;
      return (await stack.api('/api/users/-', { headers: { Authorization } })).status;
    };
    const told = async () =>
      (await readAll())
        .filter(({ user }) => user === username)
        .map(({ action, outcome, address }) => [action, outcome, address]);
    expect(await ask('wrong')).toBe(401);
    expect(await ask(PASSWORD)).toBe(200);
    const both = [
      ['login', 'refused', '127.0.0.1'],
      ['login', 'ok', '127.0.0.1'],
    ];
    expect(await told()).toEqual(both);
    // Past the time for which a header is known.
    await database`select pg_sleep(0.6)`;
    expect(await ask(PASSWORD)).toBe(200);
    expect(await told()).toEqual(both);
    // A login by POST tells of itself.
    const { username: other, login, client } = await addUser(admin);
    expect((await sendLogin(stack.url, login)).status).toBe(200);
    expect((await client.fetch('/api/users/-')).status).toBe(200);
    const ofOther = (await readAll()).filter(({ user }) => user === other);
    expect(ofOther.map(({ action }) => action)).toEqual(['login']);
  });

  test('tells of a right password as Basic whose login from there was refused as one too many', async () => {
    const { username, login } = await addUser(admin);
    await Promise.all(Array.from({ length: 25 }, () => sendLogin(stack.url, login)));
    const from = (localAddress: string, path: string, options: RequestOptions, body = '') =>
      new Promise<number | undefined>((resolve, reject) => {
        request(new URL(path, stack.url), { ...options, localAddress }, answer => {
          answer.resume().once('end', () => resolve(answer.statusCode));
        })
          .once('error', reject)
          .end(body);
      });
    const headers = { 'Content-Type': 'application/json' };
    const another = '127.0.0.2';
    const post = { method: 'POST', headers };
    expect(await from(another, '/api/login', post, JSON.stringify(login))).toBe(429);
    const Authorization = `Basic ${btoa(`${username}:${PASSWORD}`)}`;
    expect(await from(another, '/api/users/-', { headers: { Authorization } })).toBe(200);
    const told = (await readAll()).filter(
      ({ user, address }) => user === username && address === another,
    );
    expect(told.map(({ action, outcome }) => [action, outcome])).toEqual([['login', 'ok']]);
  });

  test('`windlass audit verify` finds an entry that was edited, removed or moved', async () => {
    for (let n = 0; n < 3; n++) await addUser(admin);
    const entries = await readAll();
    const whole =
      /^The audit is whole: \d+ entries, 1 to \d+; \d+ are not chained yet\.\nBefore 1: 0{64}\nOf \d+: [0-9a-f]{64}\n$/;
    for (const settings of [byUrl(), { DATA_DIR: stack.dataDir }]) {
      const { code, stdout } = await verify(settings);
      expect([code, stdout]).toEqual([0, expect.stringMatching(whole)]);
    }
    const end = entries.length;
    await stack.down();
    const started = await verify({ DATA_DIR: stack.dataDir });
    await stack.up();
    expect([started.code, started.stdout]).toEqual([0, expect.stringMatching(whole)]);
    const found = async (problem: string) => {
      const { code, stderr } = await verify(byUrl());
      expect([code, stderr]).toEqual([1, expect.stringContaining(problem)]);
    };
    await database`update audit_entries set target = 'somebody' where seq = 2`;
    await found('Entry 2 does not match its hash');
    await database`update audit_entries set target = ${entries[1]?.target ?? null} where seq = 2`;

    const [removed] = await database`delete from audit_entries where seq = 3 returning *`;
    await found('Entry 3 is missing');
    await database`insert into audit_entries ${database(removed as object)}`;

    await database`update audit_entries set seq = -1 where seq = 2`;
    await database`update audit_entries set seq = 2 where seq = 3`;
    await database`update audit_entries set seq = 3 where seq = -1`;
    await found('Entry 2 does not match its hash');
    await database`update audit_entries set seq = -1 where seq = 2`;
    await database`update audit_entries set seq = 2 where seq = 3`;
    await database`update audit_entries set seq = 3 where seq = -1`;

    const [last] = await database`delete from audit_entries where seq = ${end} returning *`;
    await found(`The chain ends with entry ${end}`);
    await database`insert into audit_entries ${database(last as object)}`;
    expect((await verify(byUrl())).code).toBe(0);
  });

  test('`windlass audit verify` tells of entries that nobody chains', async () => {
    // As one who chains, to whom the others leave it.
    await database`select pg_advisory_lock(${ADVISORY_LOCKS.auditChain})`;
    await database`insert into audit_pending (action, time) values ('login', now() - interval '2 minutes')`;
    const told = await verify(byUrl());
    await database`select pg_advisory_unlock(${ADVISORY_LOCKS.auditChain})`;
    expect([told.code, told.stderr]).toEqual([
      1,
      expect.stringMatching(
        /\d+ entries are not chained, the oldest for 1[2-9]\d s\. Workers .* logs\./,
      ),
    ]);
    await waitFor(async () => (await verify(byUrl())).code === 0, { what: 'it to be chained' });
  });

  test('`windlass audit verify` ends at once when it is asked to, however long it would read', async () => {
    await database`begin`;
    await database`lock table audit_entries in access exclusive mode`;
    const args = [WINDLASS, 'audit', 'verify'];
    const reading = startProgram({ args, settings: byUrl(), cwd: stack.dataDir });
    // Retention waits for it, too.
    const isWaiting = async () =>
      (await database`select pg_stat_clear_snapshot()`) &&
      (
        await database`select from pg_locks join pg_stat_activity using (pid)
        where relation = 'audit_entries'::regclass and not granted and mode = 'AccessShareLock'
        and backend_start > now()`
      ).length > 0;
    await waitFor(isWaiting, { what: 'the chain to be read' });
    reading.child.kill('SIGINT');
    expect(await reading.ended).toEqual({
      code: 1,
      stdout: '',
      stderr: 'windlass: Stopped before it was done.\n',
    });
    await database`rollback`;
  });

  test('old entries go from the front, and the chain begins with the hash that was kept', async () => {
    const [{ last = 0 } = {}] = await database`select last_seq::int as last from audit_chain`;
    // As if all until here had been told long ago: the hashes are those of their times.
    await database`truncate audit_entries`;
    await database`update audit_chain set before_seq = 0, last_seq = 0, before_hash = repeat('0', 64), last_hash = repeat('0', 64)`;
    await database`
      insert into audit_pending (time, username, action)
      select now() - interval '31 days', 'somebody', 'login' from generate_series(1, ${last + 2_500})`;
    await database`insert into audit_pending (username, action) values ('kept', 'logout')`;
    await waitFor(
      async () => {
        const [row] = await database`select before_seq::int as before from audit_chain`;
        return row?.before === last + 2_500;
      },
      { what: 'the old entries to go', timeoutMs: 90_000 },
    );
    const [first] = (await read()).items;
    expect(first).toMatchObject({ seq: last + 2_501, user: 'kept' });
    const { code, stdout } = await verify(byUrl());
    expect([code, stdout]).toEqual([0, expect.stringContaining(`${last + 2_501} to `)]);
  });
});
