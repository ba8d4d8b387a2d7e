import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import { startCodeHost } from '../harness/hosts/pam-sshd.ts';
import {
  addHost,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'open sesame';

describeStack(missingPrograms('sshd'), 'hosts that are for some users', form => {
  const { stack, client: admin, sshd } = useRemoteStack(form);
  const people = {} as Record<'alice' | 'bob', Client>;

  beforeAll(async () => {
    for (const username of ['alice', 'bob'] as const) {
      await admin.post('/api/users', { username, password: PASSWORD });
      people[username] = new Client(stack.url, username, PASSWORD);
    }
  });

  const entry = () => ({
    address: sshd.host,
    port: sshd.port,
    keys: [sshd.hostKey],
    private: true,
  });
  const put = (name: string, change: object) =>
    admin.fetch(`/api/hosts/${name}`, { method: 'PUT', body: JSON.stringify(change) });
  const open = (user: Client, hostname: string) =>
    user.fetch('/api/remotes', {
      method: 'POST',
      body: JSON.stringify({ hostname, username: sshd.username, privateKey: sshd.privateKey }),
    });
  const namesOf = async (user: Client) => {
    const { items } = await user.get<{ items: { name: string }[] }>('/api/hosts');
    return items.map(({ name }) => name);
  };

  test('without a list a host is for everyone', async () => {
    expect(await admin.get('/api/hosts/host')).toMatchObject({ users: '*' });
    for (const user of [admin, people.alice, people.bob]) {
      expect(await namesOf(user)).toContain('host');
      await openSession(user, sshd);
    }
  });

  test('others do not see it in the list, and get 403, a server administrator too', async () => {
    const { alice, bob } = people;
    const made = await admin.post<object>('/api/hosts', {
      ...entry(),
      name: 'closed',
      users: ['alice', 'alice'],
    });
    expect(made).toMatchObject({ users: ['alice'] });
    expect(await namesOf(alice)).toEqual(['closed', 'host']);
    expect(await namesOf(bob)).toEqual(['host']);
    expect(await namesOf(admin)).toEqual(['closed', 'host']);
    expect(await alice.get('/api/hosts/closed')).toEqual({ name: 'closed', agent: true });
    await expectProblem(await bob.fetch('/api/hosts/closed'), 403, 'host_not_allowed');
    for (const user of [bob, admin]) {
      const problem = await expectProblem(await open(user, 'closed'), 403, 'host_not_allowed');
      expect(problem.hint).toMatch(/server administrator adds you to `users`/);
      // Nothing is told of how it is set up.
      for (const guess of [{ agent: true }, { port: 1 }]) {
        const body = JSON.stringify({ hostname: 'closed', username: 'x', password: 'y', ...guess });
        const guessed = await user.fetch('/api/remotes', { method: 'POST', body });
        const { detail } = await expectProblem(guessed, 403, 'host_not_allowed');
        expect(detail).toBe(problem.detail);
      }
    }

    expect((await put('closed', { users: ['bob'] })).status).toBe(200);
    expect((await open(bob, 'closed')).status).toBe(200);
    await expectProblem(await open(alice, 'closed'), 403, 'host_not_allowed');
    expect((await put('closed', { users: [] })).status).toBe(200);
    await expectProblem(await open(bob, 'closed'), 403, 'host_not_allowed');
    expect((await put('closed', { users: '*' })).status).toBe(200);
    expect((await open(bob, 'closed')).status).toBe(200);
  });

  test('who leaves the list loses the sessions there with what runs in them, and others keep theirs', async () => {
    const { alice, bob } = people;
    await admin.post('/api/hosts', { ...entry(), name: 'left' });
    const [hers, his, hersElsewhere] = await Promise.all([
      openSession(alice, sshd, { hostname: 'left' }),
      openSession(bob, sshd, { hostname: 'left' }),
      openSession(alice, sshd, { hostname: 'host' }),
    ]);
    const command = 'echo $$ >"$HOME/left-pid"; echo begun; exec sleep 600';
    const { id } = await launchAsync(alice, hers, command);
    await waitFor(async () => (await readOutput(alice, id)).length > 0, { what: 'its output' });
    expect((await put('left', { users: ['alice', 'bob'] })).status).toBe(200);
    expect((await alice.fetch(`/api/remotes/${hers}`)).status).toBe(200);
    expect((await put('left', { users: ['bob'] })).status).toBe(200);
    await expectProblem(await alice.fetch(`/api/remotes/${hers}`), 404, 'session_not_found');
    expect(await waitForEnd(alice, id)).toMatchObject({ state: 'cancelled' });
    // It is the same account on the host.
    const check = { sid: his, command: 'kill -0 "$(cat left-pid)"' };
    expect(await bob.post('/api/remotes/launch', check)).toMatchObject({ returncode: 1 });
    expect((await alice.fetch(`/api/remotes/${hersElsewhere}`)).status).toBe(200);
    const { items } = await admin.get<{ items: object[] }>(
      '/api/audit?action=session.close&order=newest',
    );
    const target = `${hers} ${sshd.username}@left`;
    expect(items[0]).toMatchObject({ user: stack.username, target });
  });

  test('a list that was written by hand counts for the next connection', async () => {
    const { bob } = people;
    const proxy = await startTcpProxy({ host: sshd.host, port: sshd.port });
    const sql = openStackDatabase(stack);
    try {
      await admin.post('/api/hosts', { ...entry(), name: 'by-hand', port: proxy.port });
      const sid = await openSession(bob, sshd, { hostname: 'by-hand' });
      const launch = () =>
        bob.fetch('/api/remotes/launch', {
          method: 'POST',
          body: JSON.stringify({ sid, command: 'true' }),
        });
      await sql`update hosts set users = '{alice}' where name = 'by-hand'`;
      expect((await launch()).status).toBe(200);
      proxy.cut();
      const { total } = proxy.connections;
      await waitFor(async () => (await launch()).status !== 200, { what: 'a refusal' });
      await expectProblem(await launch(), 403, 'host_not_allowed');
      expect(proxy.connections.total).toBe(total);
    } finally {
      await Promise.all([proxy.stop(), sql.end()]);
    }
  });

  test('a list that is changed just then counts', async () => {
    await admin.post('/api/hosts', { ...entry(), name: 'closing' });
    const answers = await whileLocked(
      stack,
      sql => sql`update hosts set users = '{alice}' where name = 'closing'`,
      () => [open(people.bob, 'closing')],
    );
    for (const answer of answers) await expectProblem(answer, 403, 'host_not_allowed');
  });

  test('a login that is under way opens nothing for who has left the list meanwhile', async () => {
    const proxy = await startTcpProxy({ host: sshd.host, port: sshd.port });
    try {
      await admin.post('/api/hosts', { ...entry(), name: 'slow', port: proxy.port });
      proxy.blackhole();
      const answer = open(people.bob, 'slow');
      await waitFor(() => proxy.connections.total > 0, { what: 'a worker to connect' });
      expect((await put('slow', { users: ['alice'] })).status).toBe(200);
      proxy.heal();
      await expectProblem(await answer, 403, 'host_not_allowed');
      const { items } = await people.bob.get<{ items: { hostname: string }[] }>('/api/remotes');
      expect(items.filter(({ hostname }) => hostname === 'slow')).toEqual([]);
    } finally {
      await proxy.stop();
    }
  });

  describeUnless(
    missingRoot() ?? missingPrograms('google-authenticator'),
    'a host that asks for a code',
    () => {
      const host = useStarted(() => startCodeHost());

      test('a login that waits for its code is not completed by who has left the list', async () => {
        const { bob } = people;
        const hostname = await addHost(admin, host.sshd, { name: 'codes' });
        const post = (path: string, body: object) =>
          bob.fetch(`/api/remotes${path}`, { method: 'POST', body: JSON.stringify(body) });
        const asked = await post('', { hostname, username: host.account.username });
        expect(asked.status).toBe(202);
        const { sid, challenge } = (await asked.json()) as { sid: string; challenge: string };
        const code = host.nextCode();
        const answer = () => post(`/${sid}/answers`, { challenge, answers: [code] });
        expect((await put(hostname, { users: ['alice'] })).status).toBe(200);
        await expectProblem(await answer(), 403, 'host_not_allowed');
        expect((await put(hostname, { users: '*' })).status).toBe(200);
        expect((await answer()).status).toBe(200);
      });
    },
  );

  test('a user who is removed leaves the lists: a later one of the name is somebody else', async () => {
    await admin.post('/api/users', { username: 'carol', password: PASSWORD });
    await admin.post('/api/hosts', { ...entry(), name: 'hers', users: ['carol', 'alice'] });
    await admin.delete('/api/users/carol');
    expect(await admin.get('/api/hosts/hers')).toMatchObject({ users: ['alice'] });
    await admin.post('/api/users', { username: 'carol', password: PASSWORD });
    const carol = new Client(stack.url, 'carol', PASSWORD);
    await expectProblem(await open(carol, 'hers'), 403, 'host_not_allowed');
  });

  test('a name that nobody has gives the host to nobody who comes later', async () => {
    const unknown = { ...entry(), name: 'unknown', users: ['alice', 'nobody-yet', 'nor-she'] };
    const add = { method: 'POST', body: JSON.stringify(unknown) };
    for (const answer of [
      () => admin.fetch('/api/hosts', add),
      () => put('host', { users: ['nobody-yet', 'alice', 'nor-she'] }),
    ]) {
      const { fields, hint } = await expectProblem(await answer(), 400, 'invalid_input');
      const problem = 'there is no user nobody-yet, nor nor-she';
      expect(fields).toEqual([{ field: 'users', problem }]);
      expect(hint).toBe('GET /api/users lists them.');
    }
    await expectProblem(await admin.fetch('/api/hosts/unknown'), 404, 'not_found');
    expect(await admin.get('/api/hosts/host')).toMatchObject({ users: '*' });
  });

  test('what is no list of users is refused by name', async () => {
    for (const users of ['alice', 'everyone', null, [''], ['a b'], [1], Array(1_001).fill('a')]) {
      const problem = await expectProblem(await put('host', { users }), 400, 'invalid_input');
      expect(JSON.stringify(problem)).toContain('users');
    }
  });
});
