import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUser } from '../harness/clients/users.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { type RecordingServer, startRecordingServer } from '../harness/servers/recording-server.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(undefined, 'a login that is refused later', form => {
  const directory = makeTempDir('refused');
  const key = loadOrCreateKeyPair(join(directory.path, 'server_key'));
  const login = { hostKey: key.private, password: 'the first' };
  afterAll(() => directory.remove());
  const server = useStarted(() => startRecordingServer(login));
  const proxy = useStarted(() => startTcpProxy({ host: '127.0.0.1', port: server.port }));
  const { stack, client } = useStack(form, { workers: 2 });
  beforeAll(async () => {
    await addHost('host', proxy.port);
  });

  const addHost = (name: string, port: number) =>
    client.post('/api/hosts', {
      name,
      port,
      address: '127.0.0.1',
      keys: [key.public],
      agent: false,
      private: true,
    });
  const openAs = (by: Client, username: string, password: string, hostname = 'host') =>
    by.fetch('/api/remotes', {
      method: 'POST',
      body: JSON.stringify({ hostname, username, password }),
    });
  const open = (password: string, hostname?: string) =>
    openAs(client, 'someone', password, hostname);
  const launch = (sid: string) =>
    client.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({ sid, command: 'true' }),
    });
  const passwordsOf = (of: RecordingServer) =>
    of.attempts.filter(({ method }) => method === 'password').length;
  const refusals = () => passwordsOf(server);

  test('fails what the session was asked for, is not repeated, and a new session begins anew', async () => {
    const { sid } = (await (await open('the first')).json()) as { sid: string };
    expect((await launch(sid)).status).toBe(200);
    login.password = 'the second';
    proxy.cut();
    const before = refusals();
    for (const answer of await Promise.all(Array.from({ length: 8 }, () => launch(sid))))
      await expectProblem(answer, 403, 'remote_authentication_failed');
    // Each worker may have set out before the other was refused, and be refused after all are answered.
    await waitFor(() => server.open === 0, { what: 'the logins under way' });
    const tried = refusals() - before;
    expect(tried).toBeGreaterThan(0);
    expect(tried).toBeLessThanOrEqual(2);
    const { connections } = server;
    for (const answer of await Promise.all(Array.from({ length: 8 }, () => launch(sid)))) {
      const problem = await expectProblem(answer, 403, 'remote_authentication_failed');
      expect(problem.detail).toContain('is not tried again before');
    }
    // A worker that comes anew knows it too.
    stack.kill('windlass-worker');
    await expectProblem(await launch(sid), 403, 'remote_authentication_failed');
    expect([server.connections, refusals() - before]).toEqual([connections, tried]);

    const again = await open('the second');
    expect(again.status).toBe(200);
    expect((await launch(((await again.json()) as { sid: string }).sid)).status).toBe(200);
  });

  test('who guesses passwords on a host is stopped before it bans the address, at all of its accounts', async () => {
    login.password = 'the guessed';
    const { client: guesser } = await addUser(client);
    const { client: colleague } = await addUser(client);
    const mine = () => openAs(guesser, 'guesser', login.password);
    const guess = (account = 'root') => openAs(guesser, account, 'wrong');
    const tried = async (work: () => Promise<void>) => {
      const before = refusals();
      await work();
      return refusals() - before;
    };
    // A name that was mistyped thrice is no guess: what follows is right.
    for (let n = 0; n < 3; n++)
      await expectProblem(await guess('guesser'), 403, 'remote_authentication_failed');
    expect((await mine()).status).toBe(200);

    const all = await tried(async () => {
      for (let round = 0; round < 3; round++) {
        const answers = await Promise.all(Array.from({ length: 8 }, () => guess()));
        expect(new Set(answers.map(({ status }) => status))).toEqual(
          new Set(round === 0 ? [403, 429] : [429]),
        );
      }
    });
    // One more of each worker may be under way.
    expect(all).toBeGreaterThanOrEqual(4);
    expect(all).toBeLessThanOrEqual(5);

    const unsent = await tried(async () => {
      for (const refused of [await guess('other'), await mine()]) {
        const { detail } = await expectProblem(refused, 429, 'too_many_requests');
        expect(detail).toContain('the host refused 4 logins of yours');
        const seconds = Number(refused.headers.get('Retry-After'));
        expect(seconds).toBeGreaterThan(60);
        expect(seconds).toBeLessThanOrEqual(900);
      }
    });
    expect(unsent).toBe(0);
    // Nobody else is kept out, of that account either.
    expect((await openAs(colleague, 'root', login.password)).status).toBe(200);
  });

  test('a run that was left on its host is no reason to log in again', async () => {
    login.password = 'the third';
    const { sid } = (await (await open('the third')).json()) as { sid: string };
    login.password = 'the fourth';
    proxy.cut();
    await expectProblem(await launch(sid), 403, 'remote_authentication_failed');
    const refused = server.attempts.length;
    // Of another session, which is not refused: each worker that looks for such runs comes to its host.
    const witness = await startRecordingServer({ hostKey: login.hostKey, password: 'in' });
    const sql = openStackDatabase(stack);
    try {
      await addHost('witness', witness.port);
      const opened = await open('in', 'witness');
      const { sid: seen } = (await opened.json()) as { sid: string };
      expect((await launch(seen)).status).toBe(200);
      const before = passwordsOf(witness);
      const holders = stack
        .pids()
        .filter(({ name }) => /^windlass-worker(-remote)?$/.test(name)).length;
      expect(holders).toBeGreaterThan(1);
      // In memory a refusal lasts; what is in the database ages.
      stack.kill('windlass-worker');
      await sql`
        update jobs set run_at = now() - interval '1 hour', run_removed = false,
          created = now() - interval '1 hour', finished = now() - interval '1 hour'
        where session in (${sid}, ${seen})`;
      await waitFor(() => passwordsOf(witness) - before >= holders, {
        what: 'each worker to look for runs that are left',
        timeoutMs: 20_000,
      });
      expect(server.attempts.length).toBe(refused);
      // What its owner asks for is tried.
      await expectProblem(await launch(sid), 403, 'remote_authentication_failed');
      expect(server.attempts.length).toBeGreaterThan(refused);
    } finally {
      await sql.end();
      await witness.stop();
    }
  });
});
