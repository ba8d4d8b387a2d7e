import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import {
  type Database,
  describeOutage,
  isDatabaseDown,
  openDatabase,
} from '../../shared/database/connect.ts';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { startTestPostgres, type TestPostgres } from '../harness/databases/postgres-server.ts';
import { securePostgres } from '../harness/databases/secure-postgres.ts';
import {
  type Authority,
  type CertificateFiles,
  makeAuthority,
} from '../harness/files/make-authority.ts';
import { makeTempDir, type TempDir } from '../harness/files/temp-dir.ts';
import { type RunningProgram, startProgram } from '../harness/run-program.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { waitFor } from '../harness/wait-for.ts';

const ENCRYPTED = 'select ssl, client_dn from pg_stat_ssl where pid = pg_backend_pid()';
const UNTRUSTED = /^the certificate of the database is not trusted \(/;

describeUnless(missingPrograms('openssl'), 'a database with TLS', () => {
  let place: TempDir;
  let server: TestPostgres;
  let authority: Authority;
  let stranger: Authority;
  let certificate: CertificateFiles;
  let migrated: string;
  beforeAll(async () => {
    place = makeTempDir('tls');
    server = await startTestPostgres();
    authority = makeAuthority(place.path, 'authority');
    stranger = makeAuthority(place.path, 'stranger');
    certificate = authority.issue('server', 'DNS:localhost', 'IP:127.0.0.1');
    migrated = await server.createMigrated('secured');
  });
  beforeEach(() => securePostgres(server, certificate));
  afterAll(async () => {
    await server?.stop();
    place?.remove();
  });

  const open = new Set<Database>();
  afterEach(async () => {
    for (const database of open) await database.close();
    open.clear();
  });

  const urlWith = (
    parameters: Record<string, string>,
    place: { host?: string; port?: number } = {},
  ) => {
    const url = new URL(migrated);
    if (place.host) url.hostname = place.host;
    if (place.port) url.port = String(place.port);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  };
  /** What both drivers say: the pool's, and that of the direct connection. */
  const ask = async (url: string) => {
    const database = openDatabase(url, { max: 2 });
    open.add(database);
    const said = [database.sql.unsafe(ENCRYPTED), database.direct.query(ENCRYPTED)];
    return Promise.all(
      said.map(each =>
        each.then(
          rows => rows[0],
          (error: unknown) => error,
        ),
      ),
    );
  };
  const expectTls = async (url: string) => {
    const [pool, direct] = await ask(url);
    expect(pool).toMatchObject({ ssl: true });
    expect(direct).toMatchObject({ ssl: true });
  };
  const expectOutage = async (url: string, said: RegExp) => {
    for (const error of await ask(url)) {
      expect(isDatabaseDown(error)).toBe(true);
      expect(describeOutage(error)).toMatch(said);
    }
  };
  const trusted = () => ({ sslmode: 'verify-full', sslrootcert: authority.certificate });

  test('verify-full knows the server by its name and by its address', async () => {
    await expectTls(urlWith(trusted(), { host: 'localhost' }));
    await expectTls(urlWith(trusted()));
    await expectTls(
      urlWith(trusted()).replace('@127.0.0.1', `@127.0.0.1:${await findFreePort()},127.0.0.1`),
    );
    await expectTls(urlWith({ ...trusted(), sslnegotiation: 'direct' }));
  });

  test('both drivers refuse the same servers', async () => {
    await expectOutage(urlWith({ sslmode: 'verify-full' }), UNTRUSTED);
    const other = { sslrootcert: stranger.certificate };
    for (const sslmode of ['verify-full', 'verify-ca', 'require'])
      await expectOutage(urlWith({ sslmode, ...other }), UNTRUSTED);
    // libpq's meaning of it: encrypted, whoever the server is.
    await expectTls(urlWith({ sslmode: 'require' }));
    await securePostgres(server, authority.issue('elsewhere', 'DNS:elsewhere.example'));
    await expectOutage(urlWith(trusted()), /^the certificate of the database is for another name$/);
    await expectTls(urlWith({ ...trusted(), sslmode: 'verify-ca' }));
    await securePostgres(server);
    for (const sslmode of ['verify-full', 'require'])
      await expectOutage(urlWith({ sslmode }), /^the database offers no TLS$/);
  });

  test('a certificate of the client is shown to the server', async () => {
    await securePostgres(server, certificate, authority.certificate);
    const { key, certificate: cert } = authority.issue('somebody', 'DNS:somebody');
    for (const row of await ask(urlWith({ ...trusted(), sslcert: cert, sslkey: key })))
      expect(row).toEqual({ ssl: true, client_dn: '/CN=somebody' });
    const { key: other } = authority.issue('other', 'DNS:other');
    expect(() => openDatabase(urlWith({ ...trusted(), sslcert: cert, sslkey: other }))).toThrow(
      /sslkey .* do not fit/,
    );
  });

  test('connections that fall silent are noticed', { timeout: 120_000 }, async () => {
    const proxy = await startTcpProxy(server);
    const database = openDatabase(urlWith(trusted(), { port: proxy.port }), { max: 2 });
    open.add(database);
    try {
      const both = () =>
        Promise.all([database.sql.unsafe('select 1'), database.sql.unsafe('select 1')]);
      await both();
      proxy.forget();
      const error = await both().catch((reason: unknown) => reason);
      expect(isDatabaseDown(error)).toBe(true);
      await both();
    } finally {
      await proxy.stop();
    }
  });

  test('a server that is silent instead of a handshake is given up', async () => {
    const proxy = await startTcpProxy(server);
    const database = openDatabase(urlWith(trusted(), { port: proxy.port }), { max: 1 });
    open.add(database);
    try {
      // What follows the answer that TLS begins.
      proxy.cutAfter('down', 1);
      const cut = await database.sql.unsafe('select 1').catch((reason: unknown) => reason);
      expect(isDatabaseDown(cut)).toBe(true);
      proxy.blackhole('down');
      const silent = await database.sql.unsafe('select 1').catch((reason: unknown) => reason);
      expect(isDatabaseDown(silent)).toBe(true);
      proxy.heal();
      await database.sql.unsafe('select 1');
    } finally {
      await proxy.stop();
    }
  });

  const run = (args: string[], settings: Record<string, string>) =>
    startProgram({ args, settings: { DATA_DIR: place.path, ...settings }, cwd: place.path });

  test('a command says in one line what is wrong with TLS', async () => {
    const say = async (DATABASE_URL: string) => {
      const { code, stdout, stderr } = await run(['dist/cli/main.js', 'migrate'], { DATABASE_URL })
        .ended;
      expect([code, stdout]).toEqual([1, '']);
      return stderr;
    };
    const { port } = server;
    expect(await say(urlWith({ sslmode: 'verify-full' }))).toMatch(
      new RegExp(
        `^windlass: The certificate of the database at 127.0.0.1:${port} is not trusted \\(.*\\)\\. .*sslrootcert=FILE .*NODE_EXTRA_CA_CERTS\\.\n$`,
      ),
    );
    expect(await say(urlWith({ sslmode: 'verify-full', sslrootcert: '/nowhere.pem' }))).toMatch(
      /^windlass: sslrootcert of the database cannot be read: ENOENT.*\n$/,
    );
    expect(await say(urlWith({ sslmode: 'bogus' }))).toMatch(
      /^windlass: DATABASE_URL .*: must have as sslmode disable, require, verify-ca or verify-full\n$/,
    );
    await securePostgres(server);
    expect(await say(urlWith({ sslmode: 'verify-full' }))).toBe(
      `windlass: The database at 127.0.0.1:${port} offers no TLS. Set \`ssl = on\` at the server, or correct sslmode.\n`,
    );
  });

  const startApi = async (DATABASE_URL: string) => {
    const PORT = String(await findFreePort());
    const { publicKey: SEAL_PUBLIC_KEY } = await generateSealKeys();
    const SECRET_KEY = randomBytes(32).toString('base64url');
    const DATA_DIR = join(place.path, 'data');
    const keys = { SECRET_KEY, SEAL_PUBLIC_KEY };
    const api = run(['dist/api/main.js'], { PORT, DATA_DIR, DATABASE_URL, ...keys });
    const ready = async () => {
      const response = await fetch(`http://127.0.0.1:${PORT}/readyz`);
      return (await response.json()) as { ready: boolean; checks: { database: string | null } };
    };
    return { ...api, ready, url: `http://127.0.0.1:${PORT}` };
  };
  const end = async ({ child, ended }: RunningProgram) => {
    child.kill('SIGTERM');
    return ended;
  };

  test('an API that waits for a database says what is wrong with TLS, and only JSON', async () => {
    const api = await startApi(urlWith({ sslmode: 'verify-full' }));
    const reason = 'the certificate of the database is not trusted';
    await waitFor(() => api.stderr().includes(reason), { what: 'the reason' });
    const { stderr } = await end(api);
    for (const line of stderr.trim().split('\n')) expect(JSON.parse(line).level).toBe(30);
    expect(stderr).toMatch(/sslrootcert=FILE/);
  });

  test('a password that is changed under a service is an outage with a reason, and ends', {
    timeout: 120_000,
  }, async () => {
    const owner = postgres(server.url('postgres'), { max: 1 });
    const role = 'changed';
    await owner.unsafe(`create role ${role} login superuser password 'old'`);
    const url = new URL(urlWith(trusted()));
    [url.username, url.password] = [role, 'old'];
    const api = await startApi(url.href);
    try {
      await waitFor(async () => (await api.ready()).ready, { what: 'the API', timeoutMs: 60_000 });
      const change = async (password: string) => {
        await owner.unsafe(`alter role ${role} password '${password}'`);
        await owner`select pg_terminate_backend(pid) from pg_stat_activity
          where usename = ${role} and application_name = 'windlass-api' and query not like 'listen%' and query not like '%read_only%' and query not in ('select 1', '')`;
      };
      await change('new');
      const problem = /the database refuses the login of DATABASE_URL\.$/;
      await waitFor(async () => problem.test((await api.ready()).checks.database ?? ''), {
        what: 'the check',
      });
      const headers = { Authorization: `Basic ${btoa('admin:admin')}` };
      const answer = await fetch(`${api.url}/api/jobs`, { headers });
      expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, expect.any(String)]);
      const lines = () =>
        api
          .stderr()
          .trim()
          .split('\n')
          .map(
            line => JSON.parse(line) as { level: number; msg: string; err?: { message: string } },
          )
          .filter(({ msg }) => msg !== 'request');
      const told = () => lines().filter(({ msg }) => msg.startsWith('the database is unreachable'));
      await waitFor(() => told().length > 0, { what: 'a line of the log' });
      expect(told()).toMatchObject([
        {
          level: 40,
          msg: 'the database is unreachable: the database refuses the login of DATABASE_URL',
          err: { message: expect.stringContaining(`"${role}"`) },
        },
      ]);
      await change('old');
      await waitFor(async () => (await api.ready()).ready, { what: 'the API to be ready again' });
      await waitFor(() => lines().some(({ msg }) => msg === 'the database is back'), {
        what: 'that it is back',
      });
      expect(lines().filter(({ level }) => level >= 40)).toHaveLength(1);
    } finally {
      await end(api);
      await owner.end();
    }
  });
});
