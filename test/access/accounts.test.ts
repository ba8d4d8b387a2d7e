import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashSecret } from '../../api/identity/random-secrets.ts';
import { Client } from '../../servers/api-client.ts';
import { logIn, sendLogin } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { startParse, utf8 } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { apiUrls, openStackDatabase } from '../harness/databases/database.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';
const NEXT = 'another password';
const ME = '/api/users/-';
interface Token {
  id: string;
  token: string;
}

describeStack(missingPrograms('sshd'), 'accounts', form => {
  const { stack, client: admin, sshd } = useRemoteStack(form, { env: { LIMIT_REQUESTS: '0' } });
  let database: postgres.Sql;
  let made = 0;

  beforeAll(() => {
    database = openStackDatabase(stack);
  });
  afterAll(() => database?.end());

  const addUser = async (more: object = {}) => {
    const username = `user${++made}`;
    await admin.post('/api/users', { username, password: PASSWORD, ...more });
    return { username, client: new Client(stack.url, username, PASSWORD) };
  };
  const put = (client: Client, username: string, body: object) =>
    client.fetch(`/api/users/${username}`, { method: 'PUT', body: JSON.stringify(body) });
  const makeToken = (client: Client, scope = 'write') =>
    client.post<Token>('/api/users/-/tokens', { name: 'a program', scope });
  const bearer = ({ token }: Token) => ({ Authorization: `Bearer ${token}` });

  /** Everything that lets a user in, and a command that runs. */
  async function makeAccess(username: string, client: Client) {
    const login = await logIn(stack, { username, password: PASSWORD });
    const token = await makeToken(client);
    const sid = await openSession(client, sshd, { agent: false });
    const { id: job } = await launchAsync(client, sid, 'sleep 600');
    return { login, token, sid, job };
  }

  test('the own password asks for the one until now', async () => {
    const { username, client } = await addUser();
    const field = async (body: object) => {
      const problem = await expectProblem(await put(client, username, body), 400, 'invalid_input');
      return problem.fields?.map(found => found.field);
    };
    expect(await field({ password: NEXT })).toEqual(['current']);
    expect(await field({ current: PASSWORD })).toEqual(['current']);
    const wrong = await put(client, username, { password: NEXT, current: 'a wrong one' });
    await expectProblem(wrong, 403, 'forbidden');
    const [counted] = await database`
      select failures from failed_logins where key like ${`% ${username}`} and key not like '*%'`;
    expect(counted?.failures).toBe(1);
    expect((await client.fetch(ME)).status).toBe(200);

    const login = await logIn(stack, { username, password: PASSWORD });
    const changed = await login.fetch(`/api/users/${username}`, {
      method: 'PUT',
      body: JSON.stringify({ password: NEXT, current: PASSWORD }),
    });
    expect(changed.status).toBe(200);
    expect((await client.fetch(ME)).status).toBe(401);
    expect((await new Client(stack.url, username, NEXT).fetch(ME)).status).toBe(200);

    // An administrator has an own one, too; another's is reset without it.
    const { username: root, client: asRoot } = await addUser({ administrator: true });
    await expectProblem(await put(asRoot, root, { password: NEXT }), 400, 'invalid_input');
    const other = await put(asRoot, username, { password: PASSWORD, current: 'anything' });
    expect(other.status).toBe(200);
    expect((await put(asRoot, root, { password: NEXT, current: PASSWORD })).status).toBe(200);
  });

  const ways: [string, (username: string) => Promise<Response>, number][] = [
    ['a reset', name => put(admin, name, { password: NEXT }), 200],
    ['disabling', name => put(admin, name, { disabled: true }), 200],
    ['removal', name => admin.fetch(`/api/users/${name}`, { method: 'DELETE' }), 204],
  ];
  test.each(ways)('%s ends cookies, tokens and remote sessions', async (_way, end, status) => {
    const { username, client } = await addUser();
    const { login, token, sid, job } = await makeAccess(username, client);
    expect((await end(username)).status).toBe(status);
    for (const url of apiUrls(stack)) {
      expect((await login.fetch(`${url}${ME}`)).status).toBe(401);
      expect((await fetch(`${url}${ME}`, { headers: bearer(token) })).status).toBe(401);
      const basic = { Authorization: client.authorization };
      expect((await fetch(`${url}${ME}`, { headers: basic })).status).toBe(401);
    }
    const [session] = await database`select ended from sessions where sid = ${sid}`;
    expect(session?.ended).not.toBeNull();
    const { state } = await waitForEnd(admin, job);
    expect(state).toBe('cancelled');
  });

  test('the own change ends cookies, but neither tokens nor sessions', async () => {
    const { username, client } = await addUser();
    const { login, token, sid } = await makeAccess(username, client);
    expect((await put(client, username, { password: NEXT, current: PASSWORD })).status).toBe(200);
    expect((await login.fetch(ME)).status).toBe(401);
    for (const path of [ME, `/api/remotes/${sid}`])
      expect((await fetch(`${stack.url}${path}`, { headers: bearer(token) })).status).toBe(200);
    await fetch(`${stack.url}/api/remotes/${sid}`, { method: 'DELETE', headers: bearer(token) });
  });

  test('nothing lets a disabled user in until an administrator does', async () => {
    const { username, client } = await addUser();
    const token = await makeToken(client);
    expect((await client.fetch(ME)).status).toBe(200);
    await put(admin, username, { disabled: true });
    expect(await admin.get(`/api/users/${username}`)).toMatchObject({ username, disabled: true });
    await expectProblem(await client.fetch(ME), 401, 'unauthorized');
    const { requestId: _, ...refused } = await expectProblem(
      await sendLogin(stack.url, { username, password: PASSWORD }),
      401,
      'unauthorized',
    );
    const wrong = await sendLogin(stack.url, { username, password: 'a wrong one' });
    expect(await expectProblem(wrong, 401, 'unauthorized')).toMatchObject(refused);
    // Not even rows that are there for another reason.
    await database`
      insert into tokens (id, hash, username, name, scope)
      values ('planted', ${hashSecret(token.token)}, ${username}, 'x', 'read')`;
    await expectProblem(
      await fetch(`${stack.url}${ME}`, { headers: bearer(token) }),
      401,
      'unauthorized',
    );

    expect((await put(admin, username, { disabled: false })).status).toBe(200);
    expect((await client.fetch(ME)).status).toBe(200);
    expect((await fetch(`${stack.url}${ME}`, { headers: bearer(token) })).status).toBe(200);
    await expectProblem(await put(admin, stack.username, { disabled: true }), 409, 'conflict');
    const { username: mine, client: own } = await addUser();
    await expectProblem(await put(own, mine, { disabled: true }), 403, 'forbidden');
  });

  test('an administrator lists and deletes the tokens of others; their last use is told to the hour', async () => {
    const { username, client } = await addUser();
    const token = await makeToken(client, 'read');
    const path = `/api/users/${username}/tokens`;
    type List = { items: { id: string; used: string | null }[] };
    expect((await admin.get<List>(path)).items).toMatchObject([{ id: token.id, used: null }]);
    const use = () => fetch(`${stack.url}${ME}`, { headers: bearer(token) });
    expect((await use()).status).toBe(200);
    const { items } = await admin.get<List>(path);
    expect(items[0]?.used).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/);
    expect((await client.get<List>('/api/users/-/tokens')).items).toEqual(items);
    expect(JSON.stringify(items)).not.toContain(token.token.slice(4));

    await expectProblem(await client.fetch(path), 403, 'forbidden');
    await expectProblem(await admin.fetch('/api/users/nobody/tokens'), 404, 'not_found');
    const { username: other } = await addUser();
    const remove = (who: string) =>
      admin.fetch(`/api/users/${who}/tokens/${token.id}`, { method: 'DELETE' });
    await expectProblem(await remove(other), 404, 'not_found');
    expect((await remove(username)).status).toBe(204);
    await expectProblem(await use(), 401, 'unauthorized');
    await expectProblem(await remove(username), 404, 'not_found');
  });

  test('a read token reaches no host', async () => {
    const { client } = await addUser();
    const token = await makeToken(client, 'read');
    const sid = await openSession(client, sshd, { agent: false });
    const [before] = await database`select count(*)::int as n from jobs`;
    const ask = (method: string, path: string) =>
      fetch(`${stack.url}/api/remotes/${sid}${path}`, { method, headers: bearer(token) });
    for (const method of ['GET', 'HEAD'])
      expect([method, (await ask(method, '/file/etc/passwd')).status]).toEqual([method, 403]);
    await expectProblem(await ask('POST', '/browse/etc'), 403, 'forbidden');
    expect((await ask('GET', '')).status).toBe(200);
    expect(await database`select count(*)::int as n from jobs`).toEqual([before]);
    await client.delete(`/api/remotes/${sid}`);
  });

  test('a user with many jobs is removed in steps, beside the work of others, and again where that was cut off', async () => {
    const { username, client } = await addUser();
    const { id: pid } = await admin.post<{ id: string }>('/api/projects', {
      name: 'shared',
      acl: { readers: [{ user: username }] },
    });
    await database`insert into jobs (id, kind, queue, owner, payload, state, finished)
      select ${`${username}-`} || lpad(n::text, 6, '0'), 'command', 'remote', ${username}, '{"command": "true"}', 'failed', now()
      from generate_series(1, 10001) n`;
    const owned = async () => {
      const [row] = await database`select count(*)::int as n from jobs where owner = ${username}`;
      return row?.n;
    };
    const remove = () => admin.fetch(`/api/users/${username}`, { method: 'DELETE' });
    const holder = openStackDatabase(stack);
    try {
      await holder`begin`;
      await holder`select from jobs where id = ${`${username}-010001`} for update`;
      const removed = remove();
      const waiting = () => database<{ pid: number }[]>`
        select pid from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%update "jobs" set owner%'`;
      await waitFor(async () => (await waiting()).length > 0, { what: 'the last batch' });
      expect(await owned()).toBe(1);
      expect((await client.fetch(ME)).status).toBe(401);
      const changed = { method: 'PUT', body: JSON.stringify({ name: 'changed' }) };
      expect((await admin.fetch(`/api/projects/${pid}`, changed)).status).toBe(200);
      for (const { pid } of await waiting()) await database`select pg_terminate_backend(${pid})`;
      expect((await removed).status).toBe(503);
    } finally {
      await holder.end();
    }
    expect(await admin.get(`/api/users/${username}`)).toMatchObject({ disabled: true });
    expect((await remove()).status).toBe(204);
    expect(await owned()).toBe(0);
    expect((await admin.fetch(`/api/users/${username}`)).status).toBe(404);
  });

  test('so is a user with many projects, which the heir gets', async () => {
    const [{ username, client }, heir] = [await addUser(), await addUser()];
    const { id: pid } = await admin.post<{ id: string }>('/api/projects', {
      name: 'shared',
      acl: { readers: [{ user: username }] },
    });
    // After the shared one in any order, so that they are left last.
    const last = `zzzz-${username}-002001`;
    await database`insert into projects (pid, name)
      select ${`zzzz-${username}-`} || lpad(n::text, 6, '0'), 'one of many' from generate_series(1, 2001) n`;
    await database`insert into project_members (project, username, role)
      select pid, ${username}, 'administrator' from projects where pid like ${`zzzz-${username}-%`}`;
    const countOf = async (name: string) => {
      const [row] =
        await database`select count(*)::int as n from project_members where username = ${name}`;
      return row?.n;
    };
    const remove = () =>
      admin.fetch(`/api/users/${username}?projectsTo=${heir.username}`, { method: 'DELETE' });
    const holder = openStackDatabase(stack);
    try {
      await holder`begin`;
      await holder`select from projects where pid = ${last} for update`;
      const removed = remove();
      const waiting = () => database<{ pid: number }[]>`
        select pid from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%from "projects"%for update%'`;
      await waitFor(async () => (await waiting()).length > 0, { what: 'the last batch' });
      expect([await countOf(username), await countOf(heir.username)]).toEqual([2, 1_999]);
      expect((await client.fetch(ME)).status).toBe(401);
      const changed = { method: 'PUT', body: JSON.stringify({ name: 'changed' }) };
      expect((await admin.fetch(`/api/projects/${pid}`, changed)).status).toBe(200);
      for (const { pid } of await waiting()) await database`select pg_terminate_backend(${pid})`;
      expect((await removed).status).toBe(503);
    } finally {
      await holder.end();
    }
    expect(await admin.get(`/api/users/${username}`)).toMatchObject({
      disabled: true,
      soleProjects: 2,
    });
    expect((await remove()).status).toBe(204);
    expect([await countOf(username), await countOf(heir.username)]).toEqual([0, 2_001]);
  });

  test('so is a user with many uploads', async () => {
    const { username } = await addUser();
    const { pid, mid } = await makeModel(admin);
    const acl = { administrators: [{ user: stack.username }], readers: [{ user: username }] };
    const change = async (set: object) => {
      const sent = { method: 'PUT', body: JSON.stringify(set) };
      expect((await admin.fetch(`/api/projects/${pid}`, sent)).status).toBe(200);
    };
    await change({ acl });
    await database`insert into uploads (uid, owner, model, parser, parameters, aids, input, job)
      select ${`${username}-`} || n, ${username}, ${mid}, 'csv', '{}', '{a}', true, 'gone'
      from generate_series(1, 10001) n`;
    const holder = openStackDatabase(stack);
    let removed: Promise<Response>;
    try {
      await holder`begin`;
      await holder`select from uploads where uid = ${`${username}-10001`} for update`;
      removed = admin.fetch(`/api/users/${username}`, { method: 'DELETE' });
      const waiting = () => database`
        select from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%update "uploads" set%'`;
      await waitFor(async () => (await waiting()).length > 0, { what: 'the last batch' });
      await change({ name: 'changed' });
      await holder`commit`;
    } finally {
      await holder.end();
    }
    expect((await removed).status).toBe(204);
    const owners = await database`select owner from uploads where model = ${mid} group by 1`;
    expect(owners).toEqual([{ owner: expect.stringMatching(`^${username} \\(removed `) }]);
  });

  test('a removal ends parses into projects of others, which tell why', async () => {
    const { username, client } = await addUser();
    const { pid, mid } = await makeModel(admin);
    const acl = { administrators: [{ user: stack.username }], writers: [{ user: username }] };
    const shared = { method: 'PUT', body: JSON.stringify({ acl }) };
    expect((await admin.fetch(`/api/projects/${pid}`, shared)).status).toBe(200);
    const line = `${'0123456789,'.repeat(20)}1\n`;
    const big = utf8(`${'c,'.repeat(20)}d\n${line.repeat(150_000)}`);
    const claimed = await startParse(client, { mid, parser: 'csv', files: { claimed: [big] } });
    const hasChild = () => stack.pids().some(({ name }) => name === 'windlass-child-parse');
    await waitFor(hasChild, { what: 'a child to read the table', timeoutMs: 60_000 });
    stack.kill('windlass-child-parse', 'SIGSTOP');
    await database`update workers set draining = true`;
    try {
      await startParse(client, { mid, parser: 'csv', files: { waiting: [utf8('a\n1\n')] } });
      const told = () => database`
        select aids[1] as aid, jobs.state
        from uploads join jobs on jobs.id = uploads.job where uploads.model = ${mid} order by 1`;
      expect(await told()).toEqual([
        { aid: 'claimed', state: 'running' },
        { aid: 'waiting', state: 'queued' },
      ]);
      expect((await admin.fetch(`/api/users/${username}`, { method: 'DELETE' })).status).toBe(204);
      expect((await waitForEnd(admin, claimed.job)).state).toBe('cancelled');
      const parse = (aid: string) => ({
        aids: [aid],
        state: 'failed',
        error: { message: 'Cancelled: its user was removed.' },
      });
      const { parses } = await admin.get<{ parses: unknown[] }>(`/api/models/${mid}`);
      expect(parses).toMatchObject([parse('waiting'), parse('claimed')]);
    } finally {
      await database`update workers set draining = false`;
    }
  });
});
