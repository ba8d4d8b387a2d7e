import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import { findDescendants, readEnvironment } from '../../servers/processes.ts';
import { listSecrets } from '../../shared/secrets/redact.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { type ProgramEnd, startProgram } from '../harness/run-program.ts';
import { startTlsServer } from '../harness/servers/tls-server.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import {
  type FleetLease,
  holdFleetServers,
  makeFleetSettings,
  missingFleet,
} from '../harness/stacks/fleet-servers.ts';
import { findFreePorts, startStack, WORKERS_APART } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const WINDLASS = 'dist/cli/main.js';
const KINDS = ['remote', 'video', 'parse', 'upkeep'];
const NAMES = ['windlass-api', ...KINDS.map(kind => `windlass-worker-${kind}`)];

describeUnless(missingPrograms('sshd') ?? missingFleet(), 'the fleet form', () => {
  const directory = makeTempDir('fleet');
  let lease: FleetLease;
  beforeAll(async () => {
    lease = await holdFleetServers();
  });
  afterAll(async () => {
    await lease?.release();
    directory.remove();
  });

  const run = (args: string[], settings: Record<string, string>) =>
    startProgram({ args, settings, cwd: directory.path }).ended;

  describe('running', () => {
    const { stack, client, sshd } = useRemoteStack(
      { start: startStack },
      { form: 'fleet', env: WORKERS_APART },
    );
    let sid: string;
    beforeAll(async () => {
      sid = await openSession(client, sshd);
    });

    const pidsOf = (name: string) =>
      stack
        .pids()
        .filter(entry => entry.name === name)
        .map(({ pid }) => pid);
    const echo = async (word: string) =>
      (
        await client.post<{ output: string }>('/api/remotes/launch', {
          sid,
          command: `echo ${word}`,
        })
      ).output;

    test('is two of each line of the Procfile, found by name in ps, and no Postgres', () => {
      for (const name of NAMES) expect([name, pidsOf(name).length]).toEqual([name, 2]);
      const names = new Set(stack.pids().map(({ name }) => name));
      expect([...names].filter(name => /^(windlass|postgres)/.test(name)).sort()).toEqual(
        [...NAMES, 'windlass-reaper'].filter(name => names.has(name)).sort(),
      );
    });

    test('keeps nothing on its own disk', () => {
      expect(existsSync(stack.dataDir) ? readdirSync(stack.dataDir) : []).toEqual([]);
    });

    test('no process has a secret in its environment', () => {
      for (const name of NAMES)
        for (const pid of pidsOf(name))
          expect(listSecrets(readEnvironment(pid)).filter(secret => secret !== '')).toEqual([]);
    });

    test('both API processes serve the same, the second on the next port', async () => {
      const second = new URL(stack.url);
      second.port = String(Number(second.port) + 1);
      for (const url of [stack.url, second.origin]) {
        const ready = await fetch(`${url}/readyz`);
        expect([url, ready.status, await ready.json()]).toMatchObject([
          url,
          200,
          { ready: true, workers: 8 },
        ]);
      }
      const authorization = `Basic ${btoa(`${stack.username}:${stack.password}`)}`;
      const session = await fetch(`${second.origin}/api/remotes/${sid}`, {
        headers: { authorization },
      });
      expect([session.status, await session.json()]).toMatchObject([200, { sid }]);
    });

    test.each(NAMES)('%s killed is back, and commands run', async name => {
      const killed = stack.kill(name);
      expect(killed).toHaveLength(2);
      await waitFor(
        () => {
          const found = pidsOf(name);
          return found.length === 2 && !found.some(pid => killed.includes(pid));
        },
        { what: `two ${name} again`, timeoutMs: 30_000 },
      );
      await waitFor(async () => (await fetch(`${stack.url}/readyz`)).ok, {
        what: 'the API',
        timeoutMs: 30_000,
      });
      expect(await echo(name)).toBe(`${name}\n`);
    });

    test('goes on where it was after its supervisor was killed', async () => {
      stack.kill('supervisor');
      await waitFor(() => stack.pids().length === 0, {
        what: 'every process to end',
        timeoutMs: 15_000,
      });
      await stack.up();
      expect(await echo('again')).toBe('again\n');
    });

    test('stops in order: held launches are answered, and nothing is left', async () => {
      const held = client.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, command: 'touch "$HOME/held"; sleep 30' }),
      });
      await waitFor(() => existsSync(join(sshd.home, 'held')), { what: 'the command to run' });
      stack.kill('supervisor', 'SIGTERM');
      expect((await held).status).toBe(202);
      await waitFor(() => stack.pids().length === 0, { what: 'all to end', timeoutMs: 20_000 });
    });
  });

  describe('starting', () => {
    const start = async (settings: Record<string, string>) =>
      run([WINDLASS, 'up'], {
        ...(await makeFleetSettings(lease.servers)),
        PORT: String(await findFreePorts(2)),
        ...settings,
      });
    /** Refused in one line, without a secret. */
    const expectRefusal = ({ code, stdout, stderr }: ProgramEnd, line: RegExp) => {
      expect({ code, stdout, stderr }).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(line),
      });
      expect(stderr.trimEnd().split('\n')).toHaveLength(1);
      expect(stderr).not.toContain('hidden-word');
    };

    test('without one of its servers is refused in a line that names it', {
      timeout: 120_000,
    }, async () => {
      const nowhere = `127.0.0.1:${await findFreePort()}`;
      expectRefusal(
        await start({ DATABASE_URL: `postgres://someone:hidden-word@${nowhere}/x` }),
        new RegExp(`^windlass: The database at ${nowhere} cannot be reached\\. .*DATABASE_URL`),
      );
      expectRefusal(
        await start({ REDIS_URL: `redis://:hidden-word@${nowhere}` }),
        new RegExp(`^windlass: The Redis at ${nowhere} cannot be reached .*REDIS_URL`),
      );
      expectRefusal(
        await start({ S3_ENDPOINT: `http://${nowhere}` }),
        new RegExp(`^windlass: The object store at ${nowhere} cannot be used .*S3_ENDPOINT`),
      );
      expectRefusal(
        await start({ S3_SECRET_KEY: 'hidden-word' }),
        /^windlass: The object store at \S+ refuses the access key .*S3_SECRET_KEY/,
      );
    });

    describeUnless(missingPrograms('openssl'), 'by TLS', () => {
      test('whose certificate is not trusted is refused in a line that says so', {
        timeout: 120_000,
      }, async () => {
        const { redis, minio } = lease.servers;
        const why = ' its certificate is not trusted \\(DEPTH_ZERO_SELF_SIGNED_CERT\\)\\.';
        for (const [server, settings] of [
          [redis, (port: number) => ({ REDIS_URL: `rediss://:hidden-word@127.0.0.1:${port}` })],
          [minio, (port: number) => ({ S3_ENDPOINT: `https://127.0.0.1:${port}` })],
        ] as const) {
          const secure = await startTlsServer(server);
          try {
            expectRefusal(
              await start(settings(secure.port)),
              new RegExp(`^windlass: The .* at 127\\.0.*:${why} Set NODE_EXTRA_CA_CERTS`),
            );
          } finally {
            await secure.stop();
          }
        }
      });

      test('that speaks none where it is called so, or the other way round, is refused', {
        timeout: 120_000,
      }, async () => {
        const { redis, minio } = lease.servers;
        expectRefusal(
          await start({ REDIS_URL: `rediss://:hidden-word@127.0.0.1:${redis.port}` }),
          /^windlass: The Redis at .* cannot be reached .*without with redis:/,
        );
        expectRefusal(
          await start({ S3_ENDPOINT: `https://127.0.0.1:${minio.port}` }),
          /^windlass: The object store at .*: it speaks no TLS .*S3_ENDPOINT/,
        );
        const secure = await startTlsServer(redis);
        try {
          expectRefusal(
            await start({ REDIS_URL: `redis://:hidden-word@127.0.0.1:${secure.port}` }),
            /^windlass: The Redis at .* cannot be reached .*with TLS it begins with rediss:/,
          );
        } finally {
          await secure.stop();
        }
      });
    });

    test('without keys makes them, once, and says where', async () => {
      const none = { SECRET_KEY: '', SEAL_PUBLIC_KEY: '', SEAL_PRIVATE_KEYS: '' };
      const stack = await startStack({ form: 'fleet', env: none });
      try {
        const path = join(stack.dataDir, 'secrets.json');
        expect(stack.log()).toContain(`Keys are kept in ${path}`);
        expect(statSync(path).mode & 0o777).toBe(0o600);
        const made = JSON.parse(readFileSync(path, 'utf8'));
        expect(made).toEqual(
          Object.fromEntries(Object.keys(none).map(name => [name, expect.any(String)])),
        );
        expect(readdirSync(stack.dataDir)).toEqual(['secrets.json']);
      } finally {
        await stack.stop();
      }
    });

    test('where the port of the second API is in use is refused before anything is made', async () => {
      const first = await findFreePorts(2);
      const second = first + 1;
      const server = createServer().listen(second, '127.0.0.1');
      await once(server, 'listening');
      try {
        expectRefusal(
          await start({ PORT: String(first) }),
          new RegExp(`^windlass: Port ${second} on 127\\.0\\.0\\.1 is in use\\.`),
        );
      } finally {
        server.close();
      }
    });

    test('a machine runs what its Procfile says, and one that cannot be read is named', async () => {
      const nothing = join(directory.path, 'nothing');
      expectRefusal(await start({ PROCFILE: nothing }), /^windlass: PROCFILE: .*nothing.* ENOENT/);
      const path = join(directory.path, 'Procfile');
      writeFileSync(path, 'jobs: node dist/workers/main.js parse\n');
      const machine = startProgram({
        args: [WINDLASS, 'up'],
        settings: { ...(await makeFleetSettings(lease.servers)), PROCFILE: path },
        cwd: directory.path,
      });
      await waitFor(() => machine.stdout().endsWith('Windlass is ready.\n'), {
        what: 'it to be ready',
        timeoutMs: 30_000,
      });
      const children = findDescendants([machine.child.pid ?? 0]).filter(({ command }) =>
        command.startsWith('windlass-worker'),
      );
      expect(children.map(({ command }) => command)).toEqual([
        'windlass-worker-parse',
        'windlass-worker-parse',
      ]);
      machine.child.kill('SIGTERM');
      expect((await machine.ended).code).toBe(0);
    });

    test('migrate alone makes the schema and the administrator, and any process waits for it', async () => {
      const settings = await makeFleetSettings(lease.servers);
      const port = String(await findFreePort());
      const { SEAL_PRIVATE_KEYS: _, ...forApi } = settings;
      const api = startProgram({
        args: ['dist/api/main.js'],
        settings: { ...forApi, PORT: port },
        cwd: directory.path,
      });
      const { SECRET_KEY: _unused, ...forRemote } = settings;
      const remote = startProgram({
        args: ['dist/workers/main.js', 'remote'],
        settings: forRemote,
        cwd: directory.path,
      });
      const migrated = await run([WINDLASS, 'migrate'], {
        DATABASE_URL: settings.DATABASE_URL ?? '',
        ADMIN_PASSWORD: 'of the fleet',
      });
      expect(migrated).toEqual({ code: 0, stdout: 'The database is up to date.\n', stderr: '' });
      await waitFor(
        async () => {
          const response = await fetch(`http://127.0.0.1:${port}/readyz`);
          return ((await response.json()) as { workers: number }).workers === 1;
        },
        { what: 'the API and a worker', timeoutMs: 30_000 },
      );
      const me = await fetch(`http://127.0.0.1:${port}/api/users/-`, {
        headers: { authorization: `Basic ${btoa('admin:of the fleet')}` },
      });
      expect(me.status).toBe(200);
      for (const { child } of [api, remote]) child.kill('SIGTERM');
      expect((await api.ended).code).toBe(0);
      expect((await remote.ended).code).toBe(0);
    });
  });
});
