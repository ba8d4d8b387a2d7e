import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { newId } from '../../shared/ids.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { RawConnection } from '../harness/clients/raw-http.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { PASSWORD } from '../harness/clients/users.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { addHost, type Job, launchAsync, openSession } from '../harness/hosts/remote.ts';
import { makeEntry, startSftpServer } from '../harness/hosts/sftp-server.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import {
  useRemoteStack,
  useStack,
  useStackDatabase,
  useStarted,
} from '../harness/stacks/use-stack.ts';
import { outlastBrevity, waitFor } from '../harness/wait-for.ts';

const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGTfSDbvTq1ZZ3tFqQhRrXbPgAeYPXv8CZ7h8mM8bZ3m';

interface Ask {
  method: string;
  path: string;
  body: object;
}

/** What an administrator may do, and everybody; `{me}` is who asks. */
const OF_ADMINISTRATORS: Record<string, Ask> = {
  'rights of their own': { method: 'PUT', path: '/api/users/{me}', body: { administrator: true } },
  'being let in again': { method: 'PUT', path: '/api/users/{me}', body: { disabled: false } },
  'another administrator': {
    method: 'POST',
    path: '/api/users',
    body: { username: 'late', password: PASSWORD, administrator: true },
  },
  'a host': { method: 'POST', path: '/api/hosts', body: { name: 'late', keys: [HOST_KEY] } },
};
const OF_EVERYBODY: Record<string, Ask> = {
  'a token': {
    method: 'POST',
    path: '/api/users/-/tokens',
    body: { name: 'late', scope: 'write' },
  },
  'a webhook': { method: 'POST', path: '/api/webhooks', body: { url: 'https://203.0.113.1/' } },
};
const PROJECT: Ask = { method: 'POST', path: '/api/projects', body: { name: 'late' } };

/** How somebody loses rights: a change by an administrator, and the columns that it writes. */
const LOSSES = {
  'another password': { change: { password: 'another password' }, columns: {} },
  disabling: { change: { disabled: true }, columns: { disabled: true } },
  'fewer rights': { change: { administrator: false }, columns: { administrator: false } },
};

/** Whoever holds back the end of a body, or sends many requests, has one that was let in just before. */
describeStack(undefined, 'a request of somebody who loses the right to it just then', form => {
  const { stack, client: admin } = useStack(form, { env: { LIMIT_REQUESTS: '0' } });
  const database = useStackDatabase(stack);

  const addSomebody = async (administrator: boolean) => {
    const username = `user-${newId()}`;
    await admin.post('/api/users', { username, password: PASSWORD, administrator });
    return { username, login: await logIn(stack, { username, password: PASSWORD }) };
  };
  type Somebody = Awaited<ReturnType<typeof addSomebody>>;

  /** Sends all of a body but its last byte, does something, and sends that. */
  async function hold(
    { username, login }: Somebody,
    { method, path, body }: Ask,
    meanwhile: () => Promise<void>,
    credential = `Cookie: serviceauth=${login.cookies.get('serviceauth')}`,
  ): Promise<number | undefined> {
    const text = JSON.stringify(body);
    const connection = new RawConnection(stack.url);
    const lines = [
      `${method} ${path.replace('{me}', username)} HTTP/1.1`,
      `Host: ${new URL(stack.url).host}`,
      `Origin: ${stack.url}`,
      credential,
      'Content-Type: application/json',
      `Content-Length: ${text.length}`,
      // The answer to it says that the request was let in.
      'Expect: 100-continue',
    ];
    try {
      connection.write([...lines, '', ''].join('\r\n'));
      expect((await connection.next({ bare: true }))?.status).toBe(100);
      connection.write(text.slice(0, -1));
      await meanwhile();
      connection.write(text.slice(-1));
      return (await connection.next())?.status;
    } finally {
      connection.end();
    }
  }

  /** Nothing was made, and the loss stayed. */
  async function expectNothing({ username }: Somebody, columns: object, administrator: boolean) {
    const [left] = await database`
      select administrator, disabled,
        (select count(*)::int from tokens t where t.username = u.username) as tokens,
        (select count(*)::int from webhooks where owner = u.username) as webhooks,
        (select count(*)::int from project_members m where m.username = u.username) as projects,
        (select count(*)::int from users where username = 'late') as users,
        (select count(*)::int from hosts where name = 'late') as hosts
      from users u where username = ${username}`;
    const none = { tokens: 0, webhooks: 0, projects: 0, users: 0, hosts: 0 };
    expect(left).toEqual({ ...none, administrator, disabled: false, ...columns });
  }

  for (const [loss, { change, columns }] of Object.entries(LOSSES)) {
    const isOfUsers = !Object.hasOwn(columns, 'administrator');
    const asks = Object.entries({ ...OF_ADMINISTRATORS, ...(isOfUsers ? OF_EVERYBODY : {}) });
    for (const [what, ask] of [...asks, ...(isOfUsers ? [['a project', PROJECT] as const] : [])])
      test(`${loss}, while the end of a body is held back: not ${what}`, async () => {
        const administrator = Object.values(OF_ADMINISTRATORS).includes(ask);
        const somebody = await addSomebody(administrator);
        const status = await hold(somebody, ask, async () => {
          const path = `/api/users/${somebody.username}`;
          const changed = await admin.fetch(path, { method: 'PUT', body: JSON.stringify(change) });
          expect(changed.status).toBe(200);
        });
        expect(status).toBe(401);
        await expectNothing(somebody, columns, administrator);
      });
    for (const [what, { method, path, body }] of asks)
      test(`${loss}, while the user's row is written: not ${what}`, async () => {
        const administrator = Object.hasOwn(OF_ADMINISTRATORS, what);
        const somebody = await addSomebody(administrator);
        const { username, login } = somebody;
        const [answer] = await whileLocked(
          stack,
          sql => sql`
            update users set ${sql({ ...columns, version: 2 })} where username = ${username}`,
          () => [
            login.fetch(path.replace('{me}', username), { method, body: JSON.stringify(body) }),
          ],
        );
        expect(answer?.status).toBe(isOfUsers ? 401 : 403);
        await expectNothing(somebody, columns, administrator);
      });
  }

  test('fewer rights, while a body is held back beyond the end of its token: not the users', async () => {
    const somebody = await addSomebody(true);
    const { username, login } = somebody;
    const made = await login.fetch('/api/users/-/tokens', {
      method: 'POST',
      body: '{"name":"short","scope":"write"}',
    });
    const { id, token } = (await made.json()) as { id: string; token: string };
    const ends = new Date(Date.now() + 10_000);
    await database`update tokens set expires = ${ends} where id = ${id}`;
    const make = async (administrator: boolean) => {
      const body = JSON.stringify({ administrator });
      const { status } = await admin.fetch(`/api/users/${username}`, { method: 'PUT', body });
      expect(status).toBe(200);
    };
    const expire = async () => {
      await waitFor(() => Date.now() > ends.getTime(), { what: 'the token to end' });
    };
    const ask = { method: 'GET', path: '/api/users', body: {} };
    const credential = `Authorization: Bearer ${token}`;
    const statuses = await Promise.all([
      hold(somebody, ask, () => make(false).then(expire), credential),
      hold(somebody, { ...ask, path: '/api/users/-' }, expire, credential),
    ]);
    expect(statuses).toEqual([403, 200]);
  });

  test("fewer rights, while the user's row is written: no end of others' tokens and jobs", async () => {
    const [{ username, login }, other] = [await addSomebody(true), await addSomebody(false)];
    const made = await other.login.fetch('/api/users/-/tokens', {
      method: 'POST',
      body: '{"name":"kept","scope":"read"}',
    });
    const { id: token } = (await made.json()) as { id: string };
    const [open, ended] = [newId(), newId()];
    await database`insert into jobs (id, kind, queue, owner, payload, not_before, state, finished) values
      (${open}, 'command', 'remote', ${other.username}, '{}', 'infinity', 'queued', null),
      (${ended}, 'command', 'remote', ${other.username}, '{}', null, 'cancelled', now())`;
    const paths = [
      `/api/users/${other.username}/tokens/${token}`,
      `/api/jobs/${open}`,
      `/api/jobs/${ended}/record`,
    ];
    const answers = await whileLocked(
      stack,
      sql => sql`update users set administrator = false, version = 2 where username = ${username}`,
      () => paths.map(path => login.fetch(path, { method: 'DELETE' })),
    );
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403]);
    const [left] = await database`select
      (select count(*)::int from tokens where id = ${token}) as tokens,
      (select count(*)::int from jobs where id in (${open}, ${ended}) and cancel_requested is null) as jobs`;
    expect(left).toEqual({ tokens: 1, jobs: 2 });
    await database`update jobs set state = 'cancelled', finished = now() where id = ${open}`;
  });
});

/** Whoever waits for the end of a job has a request that was let in long before its answer. */
describeStack(
  missingPrograms('sshd'),
  'an answer that comes after the right to it was taken',
  form => {
    const {
      stack,
      client: admin,
      sshd,
    } = useRemoteStack(form, {
      env: { LIMIT_REQUESTS: '0' },
    });
    const database = useStackDatabase(stack);
    const files = makeTempDir('held-answers');
    afterAll(() => files.remove());
    const hostKey = loadOrCreateKeyPair(join(files.path, 'server_key'));
    let endListing = () => {};
    const listingEnds = new Promise<void>(resolve => {
      endListing = resolve;
    });
    const slow = useStarted(() =>
      startSftpServer({
        hostKey: hostKey.private,
        password: PASSWORD,
        async *list() {
          await listingEnds;
          yield [makeEntry('late')];
        },
      }),
    );

    /** Adds that server as a host of its own, behind this port. */
    const addHostBehind = ({ port }: { port: number }) => {
      const server = { host: '127.0.0.1' as const, port, hostKey: hostKey.public };
      return addHost(admin, server, { name: newId(), agent: false });
    };

    /** A command that ends a while after its file was made; a wait shorter than that is none. */
    const makeCommand = () => {
      const file = join(files.path, newId());
      const command = `until [ -e ${file} ]; do sleep 0.1; done; sleep 1; echo late`;
      return { command, end: () => writeFileSync(file, '') };
    };
    const addUser = async () => {
      const username = `user-${newId()}`;
      await admin.post('/api/users', { username, password: PASSWORD });
      return { username, client: new Client(stack.url, username, PASSWORD) };
    };
    const waitForJob = (client: Client, kind: Job['kind'], isThere = (_job: Job) => true) =>
      waitFor(
        async () => {
          const { items } = await client.get<{ items: Job[] }>('/api/jobs');
          return items.find(job => job.kind === kind && isThere(job));
        },
        { what: `a ${kind} to be there` },
      );
    const isRunning = ({ state }: Job) => state === 'running';

    test('a command launched by a token that is deleted meanwhile', async () => {
      const { client } = await addUser();
      const sid = await openSession(client, sshd);
      const body = { name: 'lent', scope: 'write' };
      const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', body);
      const { command, end } = makeCommand();
      const headers = { Authorization: `Bearer ${made.token}`, 'Content-Type': 'application/json' };
      const answer = stack.api('/api/remotes/launch', {
        method: 'POST',
        headers,
        body: JSON.stringify({ sid, command }),
      });
      const { id } = await waitForJob(client, 'command', isRunning);
      const polled = stack.api(`/api/jobs/${id}`, { headers: { ...headers, Prefer: 'wait=60' } });
      await client.delete(`/api/users/-/tokens/${made.id}`);
      end();
      for (const { status, text } of await Promise.all([answer, polled].map(read)))
        expect([status, text]).toEqual([401, expect.not.stringContaining('late')]);
    });

    test('but not where the token, or the login, has ended by itself', async () => {
      const { username, client } = await addUser();
      const sid = await openSession(client, sshd);
      const body = { name: 'short', scope: 'write' };
      const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', body);
      const login = await logIn(stack, { username, password: PASSWORD });
      /** After seven days no use extends a login. */
      const endIn = async (seconds: number) => {
        const ends = new Date(Date.now() + seconds * 1_000);
        const created = new Date(ends.getTime() - 7 * 86_400_000);
        await database`update tokens set expires = ${ends} where id = ${made.id}`;
        await database`update logins set expires = ${ends}, created = ${created} where username = ${username}`;
        return ends;
      };
      const ends = await endIn(30);
      const { command, end } = makeCommand();
      const launch = JSON.stringify({ sid, command });
      const headers = { Authorization: `Bearer ${made.token}`, 'Content-Type': 'application/json' };
      const answers = [
        stack.api('/api/remotes/launch', { method: 'POST', headers, body: launch }),
        login.fetch('/api/remotes/launch', { method: 'POST', body: launch }),
      ];
      await waitFor(
        async () =>
          (await client.get<{ items: Job[] }>('/api/jobs?kind=command')).items.length === 2,
        { what: 'both commands to be there' },
      );
      await waitFor(() => Date.now() > ends.getTime(), { what: 'both to have ended' });
      end();
      for (const { status, text } of await Promise.all(answers.map(read)))
        expect([status, text]).toEqual([200, expect.stringContaining('late')]);
    });

    test('a link that ends meanwhile lasts no longer than its token and the password of its user', async () => {
      const { command, end } = makeCommand();
      const poll = async () => {
        const { username, client } = await addUser();
        const { id } = await launchAsync(client, await openSession(client, sshd), command);
        const body = { name: 'lent', scope: 'read' };
        const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', body);
        const link = await stack.api('/api/links', {
          method: 'POST',
          headers: { Authorization: `Bearer ${made.token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ path: `/api/jobs/${id}`, seconds: 10 }),
        });
        const { url, expires } = (await link.json()) as { url: string; expires: string };
        const answer = fetch(url, { headers: { Prefer: 'wait=60' } });
        return { username, client, token: made.id, expires, answer };
      };
      const kept = await poll();
      const deleted = await poll();
      const changed = await poll();
      const polls = [kept, deleted, changed];
      const areOver = () => polls.every(({ expires }) => Date.now() > Date.parse(expires));
      await waitFor(areOver, { what: 'the links to have ended' });
      await deleted.client.delete(`/api/users/-/tokens/${deleted.token}`);
      const password = { password: 'another password', current: PASSWORD };
      const { status } = await changed.client.fetch(`/api/users/${changed.username}`, {
        method: 'PUT',
        body: JSON.stringify(password),
      });
      expect(status).toBe(200);
      end();
      const answers = await Promise.all(polls.map(({ answer }) => read(answer)));
      expect(answers.map(one => one.status)).toEqual([200, 401, 401]);
    });

    /** Has a reader of bookmarks hold all the memory that an API process has for a user: 32 MiB, until they are read. */
    async function holdMemory({ username, client }: Awaited<ReturnType<typeof addUser>>) {
      const owner = await addUser();
      const { id: pid } = await owner.client.post<{ id: string }>('/api/projects', {
        name: 'shared',
        acl: { readers: [{ user: username }] },
      });
      const text = 'x'.repeat(15 << 20);
      const bookmarks = await Promise.all(
        [1, 2, 3].map(n =>
          owner.client.post<{ id: string }>(`/api/projects/${pid}/bookmarks`, { n, text }),
        ),
      );
      const [first = '', second = '', third = ''] = bookmarks.map(
        ({ id }) => `/api/bookmarks/${id}`,
      );
      const headers = { Authorization: client.authorization };
      const hold = (path: string) =>
        new Promise<IncomingMessage>((resolve, reject) =>
          get(stack.url + path, { headers }, resolve).on('error', reject),
        );
      const held = await Promise.all([hold(first), hold(second)]);
      const release = () => {
        for (const response of held) response.destroy();
      };
      return { owner, pid, third, release };
    }

    test('a bookmark that waits for memory while its reader is removed', async () => {
      const reader = await addUser();
      const { owner, pid, third, release } = await holdMemory(reader);
      const answer = reader.client.fetch(third);
      await outlastBrevity();
      await owner.client.fetch(`/api/projects/${pid}`, {
        method: 'PUT',
        body: JSON.stringify({ acl: { readers: [] } }),
      });
      release();
      expect((await read(answer)).status).toBe(404);
    });

    test("everybody's jobs that wait for memory while an administrator becomes a user", async () => {
      const reader = await addUser();
      const path = `/api/users/${reader.username}`;
      const make = (administrator: boolean) =>
        admin.fetch(path, { method: 'PUT', body: JSON.stringify({ administrator }) });
      await make(true);
      await database`
        insert into jobs (id, kind, queue, owner, state, payload, result, finished)
        select ${newId()} || n, 'command', 'remote', 'admin', 'succeeded', '{}',
          jsonb_build_object('text', repeat('x', 500000)), now() from generate_series(1, 3) n`;
      const { release } = await holdMemory(reader);
      const answer = reader.client.fetch('/api/jobs?owner=*&limit=1000');
      await outlastBrevity();
      await make(false);
      release();
      expect((await read(answer)).status).toBe(403);
    });

    test('the events of a job that are opened while the token is deleted', async () => {
      const { username: owner, client } = await addUser();
      const id = newId();
      await database`insert into jobs (id, kind, queue, owner, payload, not_before)
        values (${id}, 'command', 'remote', ${owner}, '{}', 'infinity')`;
      const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', {
        name: 'lent',
        scope: 'read',
      });
      const headers = { Authorization: `Bearer ${made.token}` };
      const opened = openStackDatabase(stack);
      try {
        await opened`begin`;
        await opened`lock table jobs in access exclusive mode`;
        const answer = stack.api(`/api/jobs/${id}/events`, { headers });
        await waitFor(
          async () => {
            const rows = await database`select 1 from pg_stat_activity
              where wait_event_type = 'Lock' and query like 'select%' || ${'"jobs"."id" = $'} || '%'`;
            return rows.length > 0;
          },
          { what: 'the request to look for its job' },
        );
        await client.delete(`/api/users/-/tokens/${made.id}`);
        await opened`commit`;
        expect((await read(answer)).status).toBe(401);
      } finally {
        await opened.end();
        await database`update jobs set state = 'cancelled', finished = now() where id = ${id}`;
      }
    });

    test('the listing of a host that answers after the token was deleted', async () => {
      const name = await addHostBehind(slow);
      const { client } = await addUser();
      const login = { hostname: name, username: 'somebody', password: PASSWORD };
      const { sid } = await client.post<{ sid: string }>('/api/remotes', login);
      const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', {
        name: 'lent',
        scope: 'write',
      });
      const answer = stack.api(`/api/remotes/${sid}/browse/all`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${made.token}` },
      });
      await waitForJob(client, 'browse', isRunning);
      await client.delete(`/api/users/-/tokens/${made.id}`);
      await outlastBrevity();
      endListing();
      const { status, text } = await read(answer);
      expect([status, text]).toEqual([401, expect.not.stringContaining('late')]);
    });

    /** Through it a machine says nothing until it is healed. */
    const silent = useStarted(() => startTcpProxy({ host: '127.0.0.1', port: slow.port }));
    const loseMeanwhile = async (
      answer: Promise<Response>,
      lose: () => Promise<unknown>,
      end = () => silent.heal(),
    ) => {
      await waitFor(
        async () => {
          const rows = await database`select from jobs where finished is null and state = 'running'
            and kind in ('scan-host', 'connect')`;
          return rows.length > 0;
        },
        { what: 'a worker to connect' },
      );
      await lose();
      await outlastBrevity();
      end();
      return read(answer);
    };

    test('the keys of a machine, for an administrator who becomes a user', async () => {
      const { username, client } = await addUser();
      const make = (administrator: boolean) =>
        admin.fetch(`/api/users/${username}`, {
          method: 'PUT',
          body: JSON.stringify({ administrator }),
        });
      const scan = () => {
        silent.blackhole();
        return client.fetch('/api/hosts/-/scan', {
          method: 'POST',
          body: JSON.stringify({ address: '127.0.0.1', port: silent.port, private: true }),
        });
      };
      await make(true);
      const shown = await loseMeanwhile(scan(), () => make(false));
      expect([shown.status, shown.text]).toEqual([403, expect.not.stringContaining('ssh-')]);
      // Nor why it shows none.
      await make(true);
      const refused = await loseMeanwhile(
        scan(),
        () => make(false),
        () => silent.refuse(),
      );
      silent.heal();
      expect(refused.status).toBe(403);
    });

    test('a session that is opened by a token that is deleted meanwhile', async () => {
      const name = await addHostBehind(silent);
      const { client } = await addUser();
      const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', {
        name: 'lent',
        scope: 'write',
      });
      const headers = { Authorization: `Bearer ${made.token}`, 'Content-Type': 'application/json' };
      silent.blackhole();
      const answer = stack.api('/api/remotes', {
        method: 'POST',
        headers,
        body: JSON.stringify({ hostname: name, username: 'somebody', password: PASSWORD }),
      });
      const { status } = await loseMeanwhile(answer, () =>
        client.delete(`/api/users/-/tokens/${made.id}`),
      );
      expect(status).toBe(401);
      // It is there, as what was done before the token ended is.
      expect((await client.get<{ items: object[] }>('/api/remotes')).items).toHaveLength(1);
    });

    test('a key that takes long to open is used no more once its token is deleted', async () => {
      const { username, client } = await addUser();
      const sid = await openSession(client, sshd);
      const file = join(files.path, newId());
      // So many rounds take seconds.
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-a', '100', '-N', 'secret', '-f', file]);
      const key = { privateKey: readFileSync(file, 'utf8'), passphrase: 'secret' };
      const asks = {
        '/api/remotes': { hostname: 'host', username: sshd.username, ...key },
        [`/api/remotes/${sid}/login`]: key,
      };
      for (const [path, body] of Object.entries(asks)) {
        const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', {
          name: 'lent',
          scope: 'write',
        });
        const headers = {
          Authorization: `Bearer ${made.token}`,
          'Content-Type': 'application/json',
        };
        const answer = stack.api(path, { method: 'POST', headers, body: JSON.stringify(body) });
        const isUsed = async () =>
          (await database`select from tokens where id = ${made.id} and used is not null`).length >
          0;
        await waitFor(isUsed, { what: 'the request to be let in' });
        await client.delete(`/api/users/-/tokens/${made.id}`);
        expect([path, (await read(answer)).status]).toEqual([path, 401]);
      }
      const sids = await database`select sid from sessions where owner = ${username}`;
      expect(sids).toEqual([{ sid }]);
    });

    test('a session is told though nobody can tell for a moment whose the token is', async () => {
      const name = await addHostBehind(silent);
      const { client } = await addUser();
      const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
        name: 'own',
        scope: 'write',
      });
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
      silent.blackhole();
      const answer = stack.api('/api/remotes', {
        method: 'POST',
        headers,
        body: JSON.stringify({ hostname: name, username: 'somebody', password: PASSWORD }),
      });
      try {
        const { status } = await loseMeanwhile(
          answer,
          () => database`alter table tokens rename to tokens_away`,
        );
        expect(status).toBe(200);
      } finally {
        await database`alter table tokens_away rename to tokens`;
      }
    });

    /** How the reader loses the rows, while the job that makes their view cannot end. */
    const LOSSES = {
      'who has left the project': 404,
      'who has another password': 401,
    };
    for (const [whose, status] of Object.entries(LOSSES))
      test(`the rows of somebody ${whose} meanwhile`, async () => {
        const [owner, reader] = [await addUser(), await addUser()];
        const acl = { readers: [{ user: reader.username }] };
        const project = { name: 'shared', acl };
        const { id: pid } = await owner.client.post<{ id: string }>('/api/projects', project);
        const { id: mid } = await owner.client.post<{ id: string }>(`/api/projects/${pid}/models`, {
          name: 'model',
          'model-type': 'any',
        });
        const table = await makeTable(owner.client, { mid, aid: 'table', csv: 'a,b\n2,x\n1,y\n' });
        const [stored] = await database`select object from artifacts where model = ${mid}`;
        const lock = database`hashtextextended(${`views ${stored?.object}`}, 0)`;
        await database`select pg_advisory_lock(${lock})`;
        const answer = reader.client.fetch(`${table}/rows?sort=a`);
        await waitForJob(reader.client, 'view', isRunning);
        const change = status === 401 ? { password: 'another password' } : { acl: { readers: [] } };
        const [administrator, changed] =
          status === 401
            ? [admin, `/api/users/${reader.username}`]
            : [owner.client, `/api/projects/${pid}`];
        const init = { method: 'PUT', body: JSON.stringify(change) };
        expect((await administrator.fetch(changed, init)).status).toBe(200);
        await outlastBrevity();
        await database`select pg_advisory_unlock(${lock})`;
        expect((await read(answer)).status).toBe(status);
        // Nobody guessed.
        const key = `% ${reader.username}`;
        expect(await database`select key from failed_logins where key like ${key}`).toEqual([]);
      });
  },
);

async function read(answer: Promise<Response>): Promise<{ status: number; text: string }> {
  const response = await answer;
  return { status: response.status, text: await response.text() };
}
