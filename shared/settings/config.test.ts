import { expect, test } from 'vitest';
import { generateSealKeys } from '../secrets/secrets.ts';
import { ConfigError, readConfig } from './config.ts';
import { describeSettings, SETTINGS } from './settings.ts';

function problemsOf(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

test('absent and empty variables get defaults', () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    HOST: '127.0.0.1',
    PORT: 8080,
    ADMIN_USERNAME: 'admin',
    SESSION_IDLE_TIMEOUT: 900,
    LAUNCH_MAX_WAIT: 0,
    LIMIT_COMMAND_SECONDS: 0,
    LIMIT_SPOOL_BYTES: 2 ** 30,
    LIMIT_OUTPUT_BYTES: 10 * 2 ** 30,
    LIMIT_OPEN_JOBS: 10_000,
    LIMIT_SESSIONS: 100,
    LIMIT_REQUESTS: 500,
  });
  const empty = Object.fromEntries(Object.keys(SETTINGS).map(name => [name, '']));
  expect(readConfig(empty)).toEqual(config);
});

test('names every mistake, in the order of the table', () => {
  const wrong = {
    PORT: '0',
    TRUST_PROXY: '-1',
    PUBLIC_URL: 'example.org',
    DATABASE_URL: 'postgres',
    REDIS_URL: 'http://x',
    LIMIT_SPOOL_BYTES: '1',
    REMOTE_SLOTS: '1e3',
    SECRET_KEY: 'short',
  };
  const named = problemsOf(wrong).map(problem => problem.split(' ')[0]);
  expect(named).toEqual(Object.keys(SETTINGS).filter(name => Object.hasOwn(wrong, name)));
  expect(named).toHaveLength(8);
});

test('never quotes a secret', () => {
  const secret = 'hunter2';
  const wrong = {
    ADMIN_PASSWORD: secret,
    SECRET_KEY: secret,
    SEAL_PUBLIC_KEY: secret,
    SEAL_PRIVATE_KEYS: secret,
    DATABASE_URL: `mysql://u:${secret}@h/d`,
  };
  const problems = problemsOf(wrong);
  expect(problems).toHaveLength(5);
  for (const problem of problems) expect(problem).not.toContain(secret);
});

test('a database may have several hosts, of which the primary is wanted', () => {
  const problemOf = (DATABASE_URL: string) => problemsOf({ DATABASE_URL })[0];
  const url = 'postgres://u:p@one:5432,two/d?target_session_attrs=';
  expect(problemOf(`${url}read-write`)).toBeUndefined();
  expect(problemOf(`${url}standby`)).toMatch(/^DATABASE_URL .*must be read-write or primary/);
  const scram = 'postgres://u:p@one/d?require_auth=scram-sha-256';
  expect(problemOf(scram)).toBeUndefined();
  for (const wrong of [`${scram}&sslmode=require`, 'postgres://u:p@one/d?require_auth=md5'])
    expect(problemOf(wrong)).toMatch(/^DATABASE_URL .*require_auth must be scram-sha-256/);
  expect(problemOf('postgres://u:p@one:port,two/d')).toMatch(/^DATABASE_URL .*is no URL/);
  expect(problemsOf({ DATABASE_DIRECT_URL: 'postgres://one/d' })).toEqual([
    'DATABASE_DIRECT_URL: needs DATABASE_URL too',
  ]);
});

test('TLS to a database is as libpq names it, and nobody else decides about it', () => {
  const problemOf = (parameters: string) =>
    problemsOf({ DATABASE_URL: `postgres://u:p@one,two/d?${parameters}` })[0]?.replace(
      /^.*\): /,
      '',
    );
  for (const right of [
    'sslmode=disable',
    'sslmode=require',
    'sslmode=verify-full',
    'sslmode=verify-full&sslrootcert=system',
    'sslmode=verify-ca&sslrootcert=/ca.pem',
    'sslmode=require&sslcert=/a&sslkey=/b&sslnegotiation=direct',
  ])
    expect([right, problemOf(right)]).toEqual([right, undefined]);
  const modes = 'must have as sslmode disable, require, verify-ca or verify-full';
  for (const sslmode of ['allow', 'prefer', 'no-verify', 'bogus', ''])
    expect(problemOf(`sslmode=${sslmode}`)).toBe(modes);
  for (const [wrong, said] of [
    ['ssl=true', /sslmode=verify-full/],
    ['sslmode=verify-full&sslrootcert=ca.pem', /whole path as sslrootcert/],
    ['sslMode=verify-full', /has sslMode, which is none of/],
    ['ssl_mode=verify-full', /has ssl_mode/],
    ['sslmode=require&sslrootcer=/ca.pem', /has sslrootcer,/],
    ['sslmode=verify-full&sslcrl=/crl.pem', /has sslcrl,/],
    ['sslmode=verify-full&sslmode=disable', /TLS twice/],
    ['sslrootcert=/ca.pem', /needs sslmode=verify-full for its sslrootcert/],
    ['sslmode=disable&sslnegotiation=direct', /needs sslmode=verify-full/],
    ['sslmode=require&sslnegotiation=other', /postgres or direct/],
    ['sslmode=verify-ca', /needs sslrootcert/],
    ['sslmode=require&sslrootcert=system', /needs sslmode=verify-full/],
    ['sslmode=require&sslkey=/b', /sslcert and sslkey together/],
  ] as const)
    expect(problemOf(wrong)).toMatch(said);
});

test('the database of a Redis has a number', () => {
  for (const url of ['redis://host', 'redis://host/', 'rediss://:word@host:6379/12'])
    expect(problemsOf({ REDIS_URL: url })).toEqual([]);
  expect(problemsOf({ REDIS_URL: 'redis://host/windlass' })).toEqual([
    expect.stringMatching(/^REDIS_URL .*: must end with the number of a database, such as \/0/),
  ]);
});

test('a password that is not percent-encoded is named, and no part of it is taken for a host', () => {
  for (const [name, scheme] of [
    ['DATABASE_URL', 'postgres'],
    ['REDIS_URL', 'redis'],
  ] as const) {
    for (const password of ['12%zz', '12%', '%e9', '12/3', '12#3', '12?3', 'a/3', 'a#3', 'a?3']) {
      const problems = problemsOf({ [name]: `${scheme}://u:${password}@host:5432/0` });
      expect([password, problems]).toEqual([
        password,
        [expect.stringMatching(new RegExp(`^${name} .*: is no URL: .*% is written %25`))],
      ]);
    }
    for (const password of ['12%25', '%C3%A9', 'a%2F3', 'p@ss', 'é', 'a:b', '!$&*()+,;=~'])
      expect(problemsOf({ [name]: `${scheme}://u:${password}@host:5432/0` })).toEqual([]);
    expect(problemsOf({ [name]: `${scheme}:hunter2` })).toEqual([
      expect.stringContaining(`must be a URL that begins with ${scheme}://`),
    ]);
  }
});

test('an idle time is no longer than the database can count', () => {
  for (const name of ['SESSION_IDLE_TIMEOUT', 'UPLOAD_IDLE_TIMEOUT']) {
    expect(problemsOf({ [name]: '31536000000' })).toEqual([]);
    expect(problemsOf({ [name]: '999999999999' })).toEqual([
      expect.stringMatching(new RegExp(`^${name} .*from 1 to 31536000000$`)),
    ]);
  }
});

test('sealing keys must be a pair', async () => {
  const [one, other] = await Promise.all([generateSealKeys(), generateSealKeys()]);
  const keys = (publicKey: string, ...privateKeys: string[]) =>
    problemsOf({ SEAL_PUBLIC_KEY: publicKey, SEAL_PRIVATE_KEYS: privateKeys.join(', ') });
  expect(keys(one.publicKey, one.privateKey)).toEqual([]);
  expect(keys(one.publicKey, other.privateKey, one.privateKey)).toEqual([]);
  expect(keys(one.publicKey)).toEqual([]);
  expect(keys(one.publicKey, other.privateKey)).toEqual([
    expect.stringMatching(/^SEAL_PRIVATE_KEYS: /),
  ]);
});

test('an S3 server needs both keys and no path', () => {
  const keys = { S3_ACCESS_KEY: 'a', S3_SECRET_KEY: 'b' };
  const endpoint = 'http://minio:9000';
  expect(problemsOf({ S3_ENDPOINT: endpoint, ...keys })).toEqual([]);
  expect(problemsOf(keys)).toEqual([]);
  expect(problemsOf({ S3_ENDPOINT: endpoint, S3_ACCESS_KEY: 'a' })).toEqual([
    'S3_ENDPOINT: needs S3_SECRET_KEY too',
  ]);
  expect(problemsOf({ S3_ENDPOINT: endpoint })).toEqual([
    'S3_ENDPOINT: needs S3_ACCESS_KEY and S3_SECRET_KEY too',
  ]);
  for (const wrong of ['minio:9000', `${endpoint}/bucket`, 'http://user@minio:9000', ''])
    expect(problemsOf({ S3_ENDPOINT: wrong, ...keys }), wrong).toHaveLength(wrong ? 1 : 0);
});

test('only a store that is a server sends videos itself', () => {
  const store = { S3_ENDPOINT: 'http://minio:9000', S3_ACCESS_KEY: 'a', S3_SECRET_KEY: 'b' };
  expect(problemsOf({ VIDEO_DELIVERY: 'redirect', ...store })).toEqual([]);
  expect(problemsOf({ VIDEO_DELIVERY: 'redirect' })).toEqual([
    'VIDEO_DELIVERY: redirect needs S3_ENDPOINT: files have no address of their own',
  ]);
  expect(problemsOf({ VIDEO_DELIVERY: 'elsewhere', ...store })).toHaveLength(1);
});

test('the table names every setting once', () => {
  const rows = describeSettings().matchAll(/^\| `(\w+)` \|/gm);
  expect(Array.from(rows, row => row[1])).toEqual(Object.keys(SETTINGS));
});

test('PUBLIC_URL may hold a path, and nothing that could lead elsewhere', () => {
  const problems = (PUBLIC_URL: string) => problemsOf({ PUBLIC_URL }).length;
  for (const url of ['https://site.example', 'https://site.example/', 'http://s.example:81/a/b'])
    expect([url, problems(url)]).toEqual([url, 0]);
  for (const url of [
    'https://site.example/?a',
    'https://site.example/#a',
    'https://user@site.example',
    'https://site.example//other.example',
    'https://site.example/a;b',
  ])
    expect([url, problems(url)]).toEqual([url, 1]);
});

test('an identity provider is reached by https, and needs a client', () => {
  const oidc = { OIDC_ISSUER: 'https://login.example/realm', OIDC_CLIENT_ID: 'windlass' };
  expect(problemsOf(oidc)).toEqual([]);
  expect(problemsOf({ ...oidc, OIDC_AUDIENCE: 'https://windlass.example' })).toEqual([]);
  for (const OIDC_ISSUER of ['http://127.0.0.1:1', 'http://localhost:1', 'http://[::1]:1'])
    expect(problemsOf({ ...oidc, OIDC_ISSUER })).toEqual([]);
  const wrong: [string, object][] = [
    ['OIDC_ISSUER', { OIDC_ISSUER: 'http://login.example' }],
    ['OIDC_ISSUER', { OIDC_ISSUER: 'https://login.example/?a' }],
    ['OIDC_ISSUER', { OIDC_CLIENT_ID: '' }],
    ['OIDC_CLIENT_ID', { OIDC_ISSUER: '' }],
    ['OIDC_AUDIENCE', { OIDC_ISSUER: '', OIDC_CLIENT_ID: '', OIDC_AUDIENCE: 'x' }],
    ['OIDC_AUDIENCE', { OIDC_AUDIENCE: 'windlass' }],
    ['OIDC_SCOPES', { OIDC_SCOPES: 'profile' }],
    ['OIDC_USERS', { OIDC_USERS: 'users' }],
    ['OIDC_ADMINISTRATORS', { OIDC_ADMINISTRATORS: 'operators' }],
  ];
  for (const [name, change] of wrong)
    expect(problemsOf({ ...oidc, ...change })[0]).toMatch(new RegExp(`^${name}\\b`));
});

test('ALLOWED_ORIGINS are origins as a browser writes them', () => {
  const read = (ALLOWED_ORIGINS: string) => readConfig({ ALLOWED_ORIGINS }).ALLOWED_ORIGINS;
  const two = 'https://app.example, http://localhost:3000';
  expect(read(two)).toEqual(['https://app.example', 'http://localhost:3000']);
  for (const wrong of ['*', 'null', 'app.example', 'https://app.example/', 'https://App.example'])
    expect(problemsOf({ ALLOWED_ORIGINS: wrong })).toEqual([
      expect.stringMatching(/^ALLOWED_ORIGINS .*must be origins such as/),
    ]);
});

test('HOST is an IP address or a name', () => {
  for (const HOST of ['0.0.0.0', '::', '::1', 'fe80::1', 'localhost', 'host.example', 'my_host'])
    expect([HOST, problemsOf({ HOST })]).toEqual([HOST, []]);
  for (const HOST of ['999.1.1.1', '[::1]', 'host:80', 'http://host', 'a b', '1:2', '-x', '*'])
    expect([HOST, problemsOf({ HOST })]).toEqual([
      HOST,
      ['HOST (address the API listens on): must be an IP address or the name of a host'],
    ]);
  expect(problemsOf({ HOST: 'fe80::1%eth0' })).toEqual([
    expect.stringMatching(/^HOST .*without a zone.*::/),
  ]);
});

test('a number that is none of a range is told the range', () => {
  const problemOf = (name: string, value: string) => problemsOf({ [name]: value })[0];
  for (const value of ['-1', 'seven', '1.5'])
    expect(problemOf('LIMIT_OPEN_JOBS', value)).toMatch(/: must be a whole number of at least 0$/);
  for (const value of ['0', '70000', '-1', 'x'])
    expect(problemOf('PORT', value)).toMatch(/: must be a whole number from 1 to 65535$/);
  expect(problemOf('LIMIT_SPOOL_BYTES', '1')).toMatch(/of at least 1048576$/);
  expect(problemOf('LIMIT_OPEN_JOBS', '9'.repeat(20))).toMatch(/must be at most \d+$/);
  for (const value of ['2', '0', '-1', 'half', '1.5'])
    expect(problemOf('LIMIT_SHARE', value)).toMatch(
      /: must be a number above 0 and at most 1, such as 0\.5$/,
    );
  expect(problemOf('LIMIT_SHARE', '1')).toBeUndefined();
});
