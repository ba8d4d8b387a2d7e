import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { startTestPostgres, type TestPostgres } from '../harness/databases/postgres-server.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startProgram } from '../harness/run-program.ts';
import { startRedis, type TestRedis } from '../harness/servers/redis.ts';
import { startTlsServer } from '../harness/servers/tls-server.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { waitFor } from '../harness/wait-for.ts';

const API = ['dist/api/main.js'];

/** Of each test file one: processes as another runner than `npm start` starts them. */
const place = makeTempDir('start');
let server: TestPostgres;
let keys: Record<string, string>;
beforeAll(async () => {
  server = await startTestPostgres();
  const { publicKey } = await generateSealKeys();
  keys = { SECRET_KEY: randomBytes(32).toString('base64url'), SEAL_PUBLIC_KEY: publicKey };
});
afterAll(async () => {
  await server?.stop();
  place.remove();
});

async function start(settings: Record<string, string>, args = API) {
  const PORT = String(await findFreePort());
  const all = { DATA_DIR: place.path, PORT, HOST: '127.0.0.1', ...keys, ...settings };
  const program = startProgram({ args, settings: all, cwd: place.path });
  return { ...program, url: `http://127.0.0.1:${PORT}` };
}

describe('a process whose database refuses it', () => {
  const expectLine = async (DATABASE_URL: string, line: RegExp) => {
    const { ended } = await start({ DATABASE_URL });
    const { code, stderr } = await ended;
    expect(stderr).toMatch(line);
    expect([code, stderr.trimEnd().split('\n').length]).toEqual([1, 1]);
  };

  test('says that the password is wrong', async () => {
    const url = new URL(await server.createDatabase('refusing'));
    url.password = 'wrong';
    await expectLine(
      url.href,
      /^windlass: The database at 127\.0\.0\.1:\d+ refuses the password of \w+\. Correct DATABASE_URL\.$/m,
    );
  });

  test('says that there is no such database', async () => {
    const url = new URL(await server.createDatabase('there'));
    url.pathname = '/nowhere';
    await expectLine(url.href, /^windlass: There is no database nowhere at 127\.0\.0\.1:\d+\. /);
  });
});

describe('SIGTERM before a process is ready ends it quietly', () => {
  const expectQuietEnd = async (DATABASE_URL: string, waiting: string) => {
    const { child, stderr, ended } = await start({ DATABASE_URL });
    await waitFor(() => stderr().includes(waiting), { what: `"${waiting}"`, timeoutMs: 60_000 });
    child.kill('SIGTERM');
    const end = await ended;
    expect(end.stderr).not.toMatch(/uncaught|AbortError|node:/);
    expect(end.code).toBe(0);
  };

  test('while it waits for the schema', async () => {
    await expectQuietEnd(await server.createDatabase('bare'), 'the schema is older');
  });

  test('while it waits for the database', async () => {
    const nowhere = `postgres://someone:word@127.0.0.1:${await findFreePort()}/x`;
    await expectQuietEnd(nowhere, 'the database cannot be reached');
  });

  test('while it waits for its store', async () => {
    const objects = join(place.path, 'objects/objects');
    mkdirSync(objects, { recursive: true });
    writeFileSync(join(objects, 'installation'), 'another');
    const url = await server.createMigrated('without-store');
    await expectQuietEnd(url, 'waiting for the right object store');
  });
});

test('a command on a database without tables says so, and prints no hash', async () => {
  const DATABASE_URL = await server.createDatabase('empty');
  const { ended } = await start({ DATABASE_URL }, ['dist/cli/main.js', 'admin', 'reset']);
  expect(await ended).toEqual({
    code: 1,
    stdout: '',
    stderr: 'windlass: The database has no tables of Windlass yet. Run `windlass migrate`.\n',
  });
});

describeUnless(missingPrograms('redis-server'), 'a Redis with a password', () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
    await configure('requirepass', 'right', '');
  });
  async function configure(setting: string, value: string, password = ':right@') {
    const client = new Redis(`redis://${password}127.0.0.1:${redis.port}`);
    await client.config('SET', setting, value);
    client.disconnect();
  }
  afterAll(() => redis?.stop());

  test.each([
    ['another', 'WRONGPASS', (port: number) => `redis://:wrong@127.0.0.1:${port}`],
    ['none', 'NOAUTH', (port: number) => `redis://127.0.0.1:${port}`],
  ])('refuses %s, and the API says so', async (name, answer, urlOf) => {
    const DATA_DIR = join(place.path, `redis-${name}`);
    mkdirSync(DATA_DIR);
    const DATABASE_URL = await server.createMigrated(`redis-${name}`);
    const { child, stderr, ended, url } = await start({
      DATABASE_URL,
      DATA_DIR,
      REDIS_URL: urlOf(redis.port),
    });
    const problem = 'The queue refuses the login of REDIS_URL; work is accepted and waits.';
    await waitFor(
      async () => {
        const ready = await fetch(`${url}/readyz`).catch(() => undefined);
        const { checks } = ((await ready?.json()) ?? {}) as { checks?: { queue: string } };
        return checks?.queue === problem;
      },
      { what: 'the check to tell', timeoutMs: 60_000 },
    );
    const isTold = (line: string) =>
      line.includes(answer) && line.includes('the queue is unreachable');
    await waitFor(() => stderr().split('\n').some(isTold), { what: 'a line of the log' });
    child.kill('SIGTERM');
    expect((await ended).code).toBe(0);
  });

  /** Starts an API with this Redis, and waits until its /readyz tells this. */
  async function startTelling(name: string, REDIS_URL: string, isTold: (told: Told) => boolean) {
    const DATA_DIR = join(place.path, `redis-${name}`);
    mkdirSync(DATA_DIR);
    const DATABASE_URL = await server.createMigrated(`redis-${name}`);
    const misspelt = { JOB_RETENTION_DAY: '0' };
    const program = await start({ DATABASE_URL, DATA_DIR, REDIS_URL, ...misspelt });
    const waitUntilTold = (matches: (told: Told) => boolean) =>
      waitFor(
        async () => {
          const ready = await fetch(`${program.url}/readyz`).catch(() => undefined);
          return ready && matches((await ready.json()) as Told);
        },
        { what: 'the check to tell', timeoutMs: 60_000 },
      );
    await waitUntilTold(isTold);
    return { ...program, waitUntilTold };
  }
  interface Told {
    checks: { queue: string | null };
    degraded: string[];
  }

  test('may drop entries: the service is degraded, and every line of the log is JSON', async () => {
    await configure('maxmemory', '1gb');
    await configure('maxmemory-policy', 'allkeys-lru');
    const tells = ({ checks, degraded }: Told) =>
      checks.queue === null && degraded.some(line => /allkeys-lru.*noeviction/.test(line));
    const url = `redis://:right@127.0.0.1:${redis.port}`;
    const { child, ended, stderr, waitUntilTold } = await startTelling('evicting', url, tells);
    // BullMQ's own warning is among them.
    await waitFor(() => stderr().includes('IMPORTANT! Eviction policy'), { what: 'that line' });
    await configure('maxmemory-policy', 'noeviction');
    await waitUntilTold(({ degraded }) => !degraded.some(line => line.includes('noeviction')));
    child.kill('SIGTERM');
    const lines = (await ended).stderr.trimEnd().split('\n');
    expect(lines.map(line => JSON.parse(line))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ level: 40, policy: 'allkeys-lru' }),
        expect.objectContaining({
          level: 40,
          msg: 'JOB_RETENTION_DAY is no setting. Is JOB_RETENTION_DAYS meant?',
        }),
      ]),
    );
  });

  describeUnless(missingPrograms('openssl'), 'by TLS', () => {
    test('has a certificate that is not trusted, and the API says so', async () => {
      const secure = await startTlsServer(redis);
      try {
        const url = `rediss://:right@127.0.0.1:${secure.port}`;
        const { child, ended } = await startTelling('untrusted', url, ({ checks }) =>
          /^The queue cannot be reached: its certificate is not trusted \(DEPTH/.test(
            String(checks.queue),
          ),
        );
        child.kill('SIGTERM');
        expect((await ended).code).toBe(0);
      } finally {
        await secure.stop();
      }
    });
  });
});
