import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import { stackDatabaseUrl } from '../harness/databases/database.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const WINDLASS = 'dist/cli/main.js';

describeUnless(missingPrograms('sshd', 'ffmpeg'), 'a stack that is stopped and started', () => {
  const directory = makeTempDir('restart');
  afterAll(() => directory.remove());
  const { stack, client, sshd } = useRemoteStack({ start: startStack });
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  const run = (args: string[], settings: Record<string, string>) =>
    startProgram({ args, settings, cwd: directory.path }).ended;
  const databaseUrl = () => new URL(stackDatabaseUrl(stack));

  test('answers held launches 202 when it stops, and brings the command to its end afterwards', async () => {
    const launched = client.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({
        sid,
        command: `echo begun; while [ ! -e "$HOME/go" ]; do sleep 0.1; done; echo done`,
      }),
    });
    const held = await waitFor(
      async () => {
        const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=1');
        const job = items.find(({ kind }) => kind === 'command');
        return job && (await readOutput(client, job.id)).length > 0 ? job : undefined;
      },
      { what: 'the command to begin' },
    );
    const streamed = client.fetch(`/api/jobs/${held.id}/events`).then(answer => answer.text());
    stack.kill('supervisor', 'SIGTERM');
    const answer = await launched;
    expect([answer.status, answer.headers.get('Location')]).toEqual([202, `/api/jobs/${held.id}`]);
    expect(await answer.json()).toMatchObject({ id: held.id, state: 'running' });
    expect(await streamed).toContain('"state":"running"');
    // Sooner than a worker gives up what does not end.
    await waitFor(() => stack.pids().length === 0, { what: 'all to end', timeoutMs: 20_000 });

    await stack.up();
    const touched = await client.post<{ errors: string }>('/api/remotes/launch', {
      sid,
      command: 'touch "$HOME/go"',
    });
    expect(touched.errors).toBe('');
    expect(await waitForEnd(client, held.id)).toMatchObject({ state: 'succeeded' });
    expect((await readOutput(client, held.id)).toString()).toBe('begun\ndone\n');
  });

  test('keeps users, hosts, sessions, jobs, output and videos', async () => {
    await client.post('/api/users', { username: 'kept', password: 'kept password' });
    const { id } = await launchAsync(client, sid, 'head -c 6000000 /dev/zero | tr "\\0" x');
    await waitForEnd(client, id);
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 5 });
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, {
      'content-type': 'video/webm',
      images,
    });
    await waitForEnd(client, vsid);
    const look = async () => {
      const paths = [
        '/api/users',
        '/api/hosts',
        `/api/remotes/${sid}`,
        '/api/jobs?limit=1000',
        `/api/jobs/${id}`,
        `/api/jobs/${id}/output`,
        `/api/jobs/${id}/events`,
        `/api/remotes/${sid}/videos/${vsid}/status`,
        `/api/remotes/${sid}/videos/${vsid}`,
      ];
      return Promise.all(
        paths.map(async path => {
          const response = await client.fetch(path);
          const bytes = Buffer.from(await response.arrayBuffer());
          return [path, response.status, bytes.length, bytes.toString('latin1')] as const;
        }),
      );
    };
    const before = await look();
    for (const [path, status] of before) expect([path, status]).toEqual([path, 200]);
    await stack.down();
    await stack.up();
    for (const [n, after] of (await look()).entries()) {
      expect(after.slice(0, 3)).toEqual(before[n]?.slice(0, 3));
      expect(after[3] === before[n]?.[3]).toBe(true);
    }
    const { output } = await client.post<{ output: string }>('/api/remotes/launch', {
      sid,
      command: 'echo the same session',
    });
    expect(output).toBe('the same session\n');
  });

  test('a wrong password for the database, and a database that is not there, are told in one line', async () => {
    const wrong = databaseUrl();
    wrong.password = 'hidden-word';
    const missing = databaseUrl();
    missing.pathname = '/nowhere';
    for (const [url, said] of [
      [
        wrong,
        /^windlass: The database at \S+ refuses the password of \S+\. Correct DATABASE_URL\.\n$/,
      ],
      [missing, /^windlass: There is no database nowhere at \S+\. .+\n$/],
    ] as const) {
      for (const command of ['up', 'migrate']) {
        const ended = await run([WINDLASS, command], {
          DATABASE_URL: url.href,
          PORT: String(await findFreePort()),
          DATA_DIR: directory.path,
        });
        expect(ended).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(said) });
        expect(ended.stderr).not.toContain('hidden-word');
      }
    }
  });

  test('migrate may run several times at once, and makes one administrator', async () => {
    const url = databaseUrl();
    const server = postgres(url.href, { max: 1, onnotice: () => {} });
    await server`create database scratch`;
    await server.end();
    url.pathname = '/scratch';
    const migrate = () => run([WINDLASS, 'migrate'], { DATABASE_URL: url.href });
    const runs = await Promise.all([1, 2, 3].map(migrate));
    for (const { code, stdout, stderr } of runs) {
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/The database is up to date\.\n$/);
    }
    const told = runs.filter(({ stdout }) => /^Administrator: admin, password: \S+/.test(stdout));
    expect(told).toHaveLength(1);
    expect((await migrate()).stdout).toBe('The database is up to date.\n');
    const ignored = await run([WINDLASS, 'migrate'], {
      DATABASE_URL: url.href,
      ADMIN_PASSWORD: 'hidden-word',
    });
    expect(ignored.stdout).toMatch(
      /^ADMIN_PASSWORD is ignored: .+\.\nThe database is up to date\.\n$/,
    );
    const scratch = postgres(url.href, { max: 1, onnotice: () => {} });
    try {
      expect(await scratch`select username, administrator from users`).toMatchObject([
        { username: 'admin', administrator: true },
      ]);
      expect(await scratch`select count(*)::int as n from jobs`).toMatchObject([{ n: 0 }]);
    } finally {
      await scratch.end();
    }
  });
});
