import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { generateSealKeys, keyIds } from '../../shared/secrets/secrets.ts';
import { openStackDatabase, readSettings } from '../harness/databases/database.ts';
import {
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { startReceiver, type WebhookReceiver } from '../harness/servers/webhook-receiver.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { startSecondApi } from '../harness/stacks/second-api.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const WINDLASS = 'dist/cli/main.js';

describeUnless(missingPrograms('sshd'), 'keys rotate', () => {
  const { stack, client, sshd } = useRemoteStack(
    { start: startStack },
    { env: { WEBHOOK_PRIVATE: 'true' } },
  );
  let sql: postgres.Sql;
  let sid: string;
  let receiver: WebhookReceiver;
  let link: string;

  beforeAll(async () => {
    sql = openStackDatabase(stack);
    sid = await openSession(client, sshd, { env: { WORD: 'sealed' } });
    receiver = await startReceiver();
    const given = { url: receiver.url, kinds: ['command'] };
    const made = await client.post<{ secret: string }>('/api/webhooks', given);
    receiver.secret = made.secret;
    ({ url: link } = await client.post<{ url: string }>('/api/links', { path: '/api/jobs' }));
  });
  afterAll(() => Promise.all([sql?.end(), receiver?.stop()]));

  const start = (settings: Record<string, string>) =>
    startProgram({ args: [WINDLASS, 'keys', 'rotate'], settings, cwd: stack.dataDir });
  const rotate = (settings = { DATA_DIR: stack.dataDir } as Record<string, string>) =>
    start(settings).ended;
  const secretsPath = () => join(stack.dataDir, 'secrets.json');
  const readStored = (): Record<string, string> => JSON.parse(readFileSync(secretsPath(), 'utf8'));
  /** Version and key of a session's credential. */
  const sealedWith = async (of: string) => {
    const [row] = await sql<{ sealed: Buffer }[]>`select sealed from sessions where sid = ${of}`;
    return { version: row?.sealed[0], key: row?.sealed.subarray(1, 5).toString('hex') };
  };
  const programs = () =>
    stack
      .pids()
      .filter(({ name }) => name.startsWith('windlass-'))
      .map(({ pid }) => pid)
      .sort();
  const launch = (command: string) =>
    client.post<{ output: string }>('/api/remotes/launch', { sid, command });
  const send = (key: string) =>
    client.post<Job>(
      '/api/remotes/launch',
      { sid, command: 'echo once' },
      { Prefer: 'respond-async', 'Idempotency-Key': key },
    );
  /** The next connection of each session logs in anew. */
  const restartWorkers = async () => {
    const ended = stack.kill('windlass-worker');
    await waitFor(() => !programs().some(pid => ended.includes(pid)), { what: 'other workers' });
  };

  test('seals open sessions with a new key, while jobs run and without a restart', async () => {
    const before = readStored();
    const started = programs();
    const running = await launchAsync(
      client,
      sid,
      'echo begun; while [ ! -e "$HOME/go-on" ]; do sleep 0.1; done; echo done',
    );
    const repeated = await send('of-the-rotation');
    await waitForEnd(client, repeated.id);
    const { code, stdout, stderr } = await rotate();
    expect(code).toBe(0);
    // On a busy machine.
    expect(stderr).toMatch(/^(windlass: Waiting for worker .*\n)*$/);
    const after = readStored();
    const [current, previous, ...others] = keyIds(after.SEAL_PRIVATE_KEYS) ?? [];
    expect([previous, others]).toEqual([keyIds(before.SEAL_PRIVATE_KEYS)?.[0], []]);
    expect(stdout).toContain(
      `The credentials of 1 session were sealed with the new key, ${current}.`,
    );
    expect(after.SECRET_KEY).not.toBe(before.SECRET_KEY);
    expect(statSync(secretsPath()).mode & 0o777).toBe(0o600);
    expect(await sealedWith(sid)).toEqual({ version: 2, key: current });
    const told = await client.get<{ items: object[] }>('/api/audit?action=keys.rotate');
    expect(told.items).toMatchObject([{ target: current, user: null }]);

    expect(programs()).toEqual(started);
    await waitFor(async () => (await sealedWith(await openSession(client, sshd))).key === current, {
      what: 'the API to seal with it',
      timeoutMs: 30_000,
    });
    expect(await send('of-the-rotation')).toMatchObject({ job: repeated.id });
    await launch('touch "$HOME/go-on"');
    expect(await waitForEnd(client, running.id)).toMatchObject({ state: 'succeeded' });
    expect((await readOutput(client, running.id)).toString()).toBe('begun\ndone\n');
    expect((await fetch(link)).status).toBe(200);
  });

  test('a second time it forgets the oldest key, and what is open goes on after a restart', async () => {
    const before = keyIds(readStored().SEAL_PRIVATE_KEYS);
    expect((await rotate()).code).toBe(0);
    const after = keyIds(readStored().SEAL_PRIVATE_KEYS);
    expect(after).toEqual([expect.any(String), before?.[0]]);
    await restartWorkers();
    expect((await launch('echo still $WORD')).output).toBe('still sealed\n');
    // A link lives as long as the key that made it is one of the two.
    await waitFor(async () => (await fetch(link)).status === 401, { what: 'the link to end' });
  });

  test('webhooks are signed with the keys that their users have', async () => {
    const { job } = await client.post<{ job: string }>('/api/remotes/launch', {
      sid,
      command: 'true',
    });
    await waitFor(() => receiver.received.some(({ data }) => data.id === job), {
      what: 'its end to arrive',
      timeoutMs: 60_000,
    });
    expect(receiver.refused).toEqual([]);
  });

  test('one that was ended while it waited goes on with its keys, and keeps those in use', async () => {
    const before = readStored();
    const { privateKey } = await generateSealKeys();
    const pending = {
      ...before,
      SECRET_KEY_BEFORE: 'pending'.padEnd(43, '0'),
      SEAL_PRIVATE_KEYS: `${privateKey},${before.SEAL_PRIVATE_KEYS}`,
    };
    writeFileSync(secretsPath(), JSON.stringify(pending), { mode: 0o600 });
    expect(await rotate()).toMatchObject({ code: 0 });
    const after = readStored();
    const inUse = keyIds(before.SEAL_PRIVATE_KEYS)?.[0];
    expect(keyIds(after.SEAL_PRIVATE_KEYS)).toEqual([keyIds(privateKey)?.[0], inUse]);
    expect([after.SECRET_KEY, after.SECRET_KEY_BEFORE]).toEqual([
      pending.SECRET_KEY_BEFORE,
      before.SECRET_KEY,
    ]);
    await restartWorkers();
    expect((await launch('echo goes on')).output).toBe('goes on\n');
  });

  test('what cannot be opened is counted, and left', async () => {
    const other = await openSession(client, sshd);
    await sql`update sessions set sealed = set_byte(sealed, 90, 1 + get_byte(sealed, 90) % 255) where sid = ${other}`;
    const { code, stdout } = await rotate();
    expect(code).toBe(0);
    expect(stdout).toContain(' 1 could not be opened, and were left.');
  });

  describe('with the keys of a fleet, in the environment', () => {
    /** Settings with a key that no worker has. */
    const withUnknownKey = async () => {
      const made = await startProgram({ args: [WINDLASS, 'keys', 'new'], cwd: stack.dataDir })
        .ended;
      const key = /^SEAL_PRIVATE_KEYS=(\S+)$/m.exec(made.stdout)?.[1] ?? '';
      const { DATABASE_URL = '' } = await readSettings(stack);
      return { DATABASE_URL, SEAL_PRIVATE_KEYS: `${key},${readStored().SEAL_PRIVATE_KEYS}` };
    };

    test('the APIs know the new SECRET_KEY before one of them uses it', async () => {
      const { SECRET_KEY = '' } = await readSettings(stack);
      const next = 'next'.padEnd(43, '0');
      const [restarted, changed] = await Promise.all([
        startSecondApi(stack, { SECRET_KEY_BEFORE: next }),
        startSecondApi(stack, { SECRET_KEY: next, SECRET_KEY_BEFORE: SECRET_KEY }),
      ]);
      onTestFinished(async () => {
        await Promise.all([restarted.stop(), changed.stop()]);
      });
      const post = (url: string, path: string, body: object, key = 'of-the-fleet') =>
        fetch(url + path, {
          method: 'POST',
          headers: {
            Authorization: client.authorization,
            'Content-Type': 'application/json',
            Prefer: 'respond-async',
            'Idempotency-Key': key,
          },
          body: JSON.stringify(body),
        });
      const repeat = async (url: string, key?: string) => {
        const answer = await post(url, '/api/remotes/launch', { sid, command: 'echo once' }, key);
        if (!answer.ok) {
          await answer.body?.cancel();
          return answer.status;
        }
        // A repeat names the job of the first request.
        const { id, job } = (await answer.json()) as { id?: string; job?: string };
        return job ?? id;
      };
      const job = await repeat(changed.url);
      expect(await repeat(restarted.url)).toBe(job);
      const jobBefore = await repeat(restarted.url, 'of-the-fleet-before');
      expect(await repeat(changed.url, 'of-the-fleet-before')).toBe(jobBefore);
      const made = await post(changed.url, '/api/links', { path: '/api/jobs' }, 'of-the-link');
      const { url } = (await made.json()) as { url: string };
      const { pathname, search } = new URL(url);
      const open = async (api: string) => {
        const answer = await fetch(api + pathname + search);
        await answer.body?.cancel();
        return answer.status;
      };
      expect(await open(changed.url)).toBe(200);
      expect(await open(restarted.url)).toBe(200);
      // One that was not restarted: why the guide has them all restarted first.
      expect([await repeat(stack.url), await open(stack.url)]).toEqual([409, 401]);
    });

    test('one that is stopped while it waits does not end like one that is done', async () => {
      const { child, ended } = start(await withUnknownKey());
      const isWaiting = async () => {
        const locks = await sql`select from pg_locks
          where locktype = 'advisory' and objid::bigint = ${ADVISORY_LOCKS.keyRotation}`;
        return locks.length > 0;
      };
      await waitFor(isWaiting, { what: 'the rotation to begin' });
      child.kill('SIGTERM');
      expect(await ended).toEqual({
        code: 1,
        stdout: '',
        stderr: 'windlass: Stopped before it was done.\n',
      });
    });

    test('without them it asks for them', async () => {
      const { DATABASE_URL = '' } = await readSettings(stack);
      const nowhere = join(stack.dataDir, 'nowhere');
      const { code, stderr } = await rotate({ DATABASE_URL, DATA_DIR: nowhere });
      expect([code, stderr]).toEqual([
        1,
        `windlass: There is no data directory ${nowhere}. Set SEAL_PRIVATE_KEYS to the keys of the fleet, or DATA_DIR to the folder of the service.\n`,
      ]);
    });

    test('a key that a worker lacks is not used', { timeout: 150_000 }, async () => {
      const before = await sealedWith(sid);
      const { code, stderr } = await rotate(await withUnknownKey());
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^windlass: Waiting for worker \S+, which does not have the new key [0-9a-f]{8} yet\.\n(.*\n)?windlass: Nothing was sealed anew: the worker \S+ does not have the new key [0-9a-f]{8}\./,
      );
      expect(await sealedWith(sid)).toEqual(before);
    });
  });
});
