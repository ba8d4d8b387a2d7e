import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  addHost,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startRecordingServer } from '../harness/servers/recording-server.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'open sesame';

describeStack(missingPrograms('sshd'), 'a host that is changed while sessions are open', form => {
  const directory = makeTempDir('host-changes');
  afterAll(() => directory.remove());
  const realKey = loadOrCreateKeyPair(join(directory.path, 'real_key'));
  const thiefKey = loadOrCreateKeyPair(join(directory.path, 'thief_key'));
  const real = useStarted(() =>
    startRecordingServer({ hostKey: realKey.private, password: PASSWORD }),
  );
  /** The administrator's machine, which waits for passwords. */
  const thief = useStarted(() =>
    startRecordingServer({ hostKey: thiefKey.private, password: PASSWORD }),
  );
  const { stack, client, sshd } = useRemoteStack(form);
  let alice: Client;
  let sql: ReturnType<typeof openStackDatabase>;

  beforeAll(async () => {
    await client.post('/api/users', { username: 'alice', password: PASSWORD });
    alice = new Client(stack.url, 'alice', PASSWORD);
    sql = openStackDatabase(stack);
  });
  afterAll(() => sql.end());

  /** A session of alice on a host of this name, opened with her password. */
  const openOn = async (name: string) => {
    const at = { address: '127.0.0.1', port: real.port, keys: [realKey.public] };
    await client.post('/api/hosts', { name, ...at, agent: false, private: true });
    const login = { hostname: name, username: 'alice', password: PASSWORD };
    return (await alice.post<{ sid: string }>('/api/remotes', login)).sid;
  };
  const put = (name: string, change: object) =>
    client.fetch(`/api/hosts/${name}`, { method: 'PUT', body: JSON.stringify(change) });
  const launch = (user: Client, sid: string) =>
    user.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({ sid, command: 'true' }),
    });
  const expectChanged = async (response: Response) => {
    const problem = await expectProblem(response, 409, 'host_changed');
    expect(problem.hint).toMatch(/Open a new session/);
  };
  /** The connection of the session is closed: the next work makes another one. */
  const loseConnection = async (sid: string) => {
    const before = real.connections;
    real.hangUp();
    await waitFor(async () => (await launch(alice, sid)).ok && real.connections > before, {
      what: 'another connection',
    });
    real.hangUp();
  };

  const withoutTrigger = async (write: () => PromiseLike<unknown>) => {
    await sql`set session_replication_role = replica`;
    await write();
    await sql`set session_replication_role = default`;
  };

  test('two changes, first of the keys and then of the port, give no password away', async () => {
    const sid = await openOn('bait');
    await loseConnection(sid);
    await put('bait', { keys: [realKey.public, thiefKey.public] });
    await put('bait', { port: thief.port });
    await expectChanged(await launch(alice, sid));
    expect(thief.attempts).toEqual([]);
    expect(thief.connections).toBe(0);
  });

  test.each(['with', 'without'])(
    'nor does a row that was written by hand, %s the trigger of the table',
    async trigger => {
      const name = `by-hand-${trigger}`;
      const sid = await openOn(name);
      await loseConnection(sid);
      const write = () =>
        sql`update hosts set port = ${thief.port}, keys = ${[thiefKey.public]} where name = ${name}`;
      await (trigger === 'without' ? withoutTrigger(write) : write());
      await expectChanged(await launch(alice, sid));
      await expectChanged(await alice.fetch(`/api/remotes/${sid}`));
      expect(thief.connections).toBe(0);
      const [row] = await sql`select sealed from sessions where sid = ${sid}`;
      expect(row?.sealed).toBeNull();
    },
  );

  test('nor does a row that is removed and made again under its name', async () => {
    const sid = await openOn('again');
    await loseConnection(sid);
    await sql`delete from hosts where name = 'again'`;
    await client.post('/api/hosts', {
      name: 'again',
      address: '127.0.0.1',
      port: thief.port,
      keys: [thiefKey.public],
      agent: false,
      private: true,
    });
    await expectChanged(await launch(alice, sid));
    expect(thief.connections).toBe(0);
  });

  test('what 0.1.0 sealed, which names no place, is sent nowhere, and its user is told to open a session', async () => {
    const sid = await openOn('unbound');
    real.hangUp();
    await sql`update sessions set sealed = set_byte(sealed, 0, 1) where sid = ${sid}`;
    await waitFor(async () => !(await launch(alice, sid)).ok, { what: 'a refusal' });
    const before = real.connections;
    const answer = await launch(alice, sid);
    const problem = await expectProblem(answer, 403, 'remote_authentication_failed');
    expect(problem.detail).toContain('0.1.0 sealed them');
    expect(problem.hint).toBe('Open a new session.');
    expect(real.connections).toBe(before);
    expect((await alice.fetch(`/api/remotes/${sid}`, { method: 'DELETE' })).ok).toBe(true);
  });

  test.each([
    ['another key beside its own', () => ({ keys: [realKey.public, thiefKey.public] })],
    ['another address', () => ({ address: 'localhost' })],
    ['another port', () => ({ port: thief.port })],
  ])('%s ends its sessions, and is told until the row is removed', async (what, change) => {
    const name = what.replaceAll(' ', '-');
    const sid = await openOn(name);
    expect((await put(name, { agent: true })).status).toBe(200);
    expect((await put(name, { keys: [realKey.public] })).status).toBe(200);
    expect((await launch(alice, sid)).status).toBe(200);
    expect((await put(name, change())).status).toBe(200);
    const path = `/api/remotes/${sid}`;
    await expectChanged(await alice.fetch(path));
    await expectChanged(await launch(alice, sid));
    const video = { 'content-type': 'video/mp4', images: ['/a.png'] };
    await expectChanged(
      await alice.fetch(`${path}/videos`, { method: 'POST', body: JSON.stringify(video) }),
    );
    await expectChanged(await alice.fetch(`${path}/browse/tmp`, { method: 'POST' }));
    // It is nobody else's business.
    await expectProblem(await client.fetch(path), 404, 'session_not_found');
    const { items } = await alice.get<{ items: { sid: string }[] }>('/api/remotes');
    expect(items.map(one => one.sid)).not.toContain(sid);
    expect((await alice.fetch(path, { method: 'DELETE' })).status).toBe(204);
    await expectProblem(await alice.fetch(path), 404, 'session_not_found');
    await expectProblem(await launch(alice, sid), 404, 'session_not_found');
    expect(thief.connections).toBe(0);
  });

  test('a session that its user has ended stays so, and its credential goes', async () => {
    const sid = await openOn('ended');
    await alice.delete(`/api/remotes/${sid}`);
    // As long as something of it is to be cleaned up.
    await sql`update sessions set sealed = 'x' where sid = ${sid}`;
    await sql`update jobs set run_at = now(), run_removed = false where session = ${sid}`;
    expect((await put('ended', { port: thief.port })).status).toBe(200);
    const [row] = await sql`select sealed from sessions where sid = ${sid}`;
    expect(row?.sealed).toBeNull();
    await expectProblem(await alice.fetch(`/api/remotes/${sid}`), 404, 'session_not_found');
    expect(thief.connections).toBe(0);
  });

  test.each([
    ['in a session with an agent', true, false],
    ['in a session without one', false, false],
    ['after a change by hand, without the trigger', true, true],
  ])(
    'running and waiting jobs end as failed %s, and nothing is sent to the new place',
    async (what, agent, byHand) => {
      const hostname = what.replaceAll(/\W+/g, '-');
      await addHost(client, sshd, { name: hostname, agent });
      const sid = await openSession(client, sshd, { hostname, agent });
      const go = join(sshd.home, `go-${hostname}`);
      const command = `echo x >>"$HOME/ran-${hostname}"; echo begun; while ! test -e "${go}"; do sleep 0.1; done`;
      const { id } = await launchAsync(client, sid, command);
      await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
      const others = await Promise.all(
        Array.from({ length: 3 }, () => launchAsync(client, sid, 'sleep 600')),
      );
      const change = { port: thief.port, keys: [thiefKey.public] };
      if (byHand)
        await withoutTrigger(() => sql`update hosts set ${sql(change)} where name = ${hostname}`);
      else expect((await put(hostname, change)).status).toBe(200);
      for (const job of [id, ...others.map(other => other.id)]) {
        const ended: Job = await waitForEnd(client, job, 30_000);
        expect(ended).toMatchObject({ state: 'failed', error: { code: 'host_changed' } });
      }
      // The end of what ran is not known: the job says so.
      const { error } = await client.get<Job>(`/api/jobs/${id}`);
      expect(error?.detail).toMatch(/may run on/);
      writeFileSync(go, '');
      expect(readFileSync(join(sshd.home, `ran-${hostname}`), 'utf8')).toBe('x\n');
      expect(thief.connections).toBe(0);
    },
  );

  test('a session that is being opened while its host is changed is sent nowhere else', async () => {
    const at = { address: '127.0.0.1', keys: [realKey.public, thiefKey.public], private: true };
    await client.post('/api/hosts', { ...at, name: 'racing', port: real.port, agent: false });
    const holder = openStackDatabase(stack);
    try {
      await holder`begin`;
      await holder`update hosts set port = ${thief.port}, version = version + 1 where name = 'racing'`;
      const login = { hostname: 'racing', username: 'alice', password: PASSWORD };
      const opening = alice.fetch('/api/remotes', { method: 'POST', body: JSON.stringify(login) });
      await waitFor(
        async () =>
          (
            await sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ '"hosts"'`
          ).length > 0,
        { what: 'the request to wait for the row' },
      );
      await holder`commit`;
      await expectChanged(await opening);
    } finally {
      await holder.end();
    }
    expect(thief.connections).toBe(0);
  });
});
