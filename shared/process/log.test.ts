import { DrizzleQueryError } from 'drizzle-orm/errors';
import { expect, test } from 'vitest';
import { listSecrets, removeSecrets } from '../secrets/redact.ts';
import { createLog } from './log.ts';

const SECRET = 'hunter2-"\\é-hunter2';

/** What is written of one line. */
function written(fields: object, message = 'said', secrets: string[] = []) {
  let text = '';
  const log = createLog({
    level: 'trace',
    name: 'test',
    secrets,
    write: line => {
      text += line;
    },
  });
  log.child({ job: 'j1' }).trace(fields, message);
  return { text, line: JSON.parse(text) };
}

test('removes secret fields at any depth and in any spelling', () => {
  const fields = {
    headers: { Authorization: SECRET, 'set-cookie': [SECRET], Cookie: SECRET, host: 'h' },
    body: [{ login: { user: { password: SECRET, passphrase: SECRET, private_key: SECRET } } }],
    config: { SECRET_KEY: SECRET, S3_SECRET_KEY: SECRET, SEAL_PRIVATE_KEYS: SECRET },
    token: SECRET,
  };
  const { line } = written(fields);
  expect(line).toMatchObject({
    job: 'j1',
    msg: 'said',
    headers: { Authorization: '[redacted]', 'set-cookie': '[redacted]', host: 'h' },
    body: [{ login: { user: { password: '[redacted]' } } }],
    token: '[redacted]',
  });
  expect(JSON.stringify(line)).not.toContain('hunter2');
});

test('an error keeps its message, codes and causes, but no parameters', () => {
  const cause = Object.assign(new Error('WRONGPASS'), {
    code: 'ERR',
    command: { name: 'auth', args: [SECRET] },
  });
  const query = new DrizzleQueryError('insert into t values ($1)', [`${SECRET}\n    at x`], cause);
  const { line, text } = written({ err: new AggregateError([query], 'both', { cause: query }) });
  expect(line.err).toMatchObject({
    type: 'AggregateError',
    message: 'both',
    cause: { message: 'Failed query: insert into t values ($1)', cause: { code: 'ERR' } },
    errors: [{ cause: { message: 'WRONGPASS' } }],
  });
  expect(line.err.stack).toContain('log.test.ts');
  expect(line.err.cause.stack).toContain('log.test.ts');
  expect(text).not.toContain('hunter2');
});

test("removes texts of a secret's shape", () => {
  const key = '-----BEGIN OPENSSH PRIVATE KEY-----\nabcdef\n-----END OPENSSH PRIVATE KEY-----';
  const { line, text } = written(
    { err: new Error(`cannot reach postgres://me:${'abcdef'}@db:5432/x`), key, a: ['é'] },
    'redis://:abcdef@r and Basic YWJjZGVmOmFiY2RlZmFiY2RlZg== and Basic authentication',
  );
  expect(text).not.toMatch(/abcdef|YWJjZGVm/);
  expect(line.err.message).toBe('cannot reach postgres://me:[redacted]@db:5432/x');
  expect(line.msg).toBe('redis://:[redacted]@r and Basic [redacted] and Basic authentication');
});

test('removes short credentials, bare tokens and keys with header lines, and no ordinary words', () => {
  const short = Buffer.from('me:abc').toString('base64');
  const token = `wdl_${'aB3-_'.repeat(8)}xyz`;
  const header = 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00';
  const key = `-----BEGIN RSA PRIVATE KEY-----\n${header}\n\nabcdef\n-----END RSA PRIVATE KEY-----`;
  const { line, text } = written({ key }, `Basic ${short}, basic ${short} and ${token} end`);
  expect(text).not.toMatch(/abcdef|Proc/);
  expect(line.key).toBe('[redacted] -----END RSA PRIVATE KEY-----');
  expect(line.msg).not.toContain(short);
  expect(line.msg).not.toContain('aB3');
  for (const ordinary of [
    'basic auth, Basic settings, basic/test and the basic idea',
    'wdl_short, Basic YWJj and basic functionality123',
    '-----BEGIN PUBLIC KEY-----abcdef-----END PUBLIC KEY-----',
  ])
    expect(written({}, ordinary).line.msg).toBe(ordinary);
});

test('removes known values anywhere', () => {
  const secrets = listSecrets({
    ADMIN_PASSWORD: SECRET,
    DATABASE_URL: 'postgres://me:p%40ssword@db/x',
    DATABASE_DIRECT_URL: 'postgres://me:of-several@one:5432,two:5433/x',
    SEAL_PRIVATE_KEYS: 'first-key,second-key',
    PORT: 8080,
  });
  const { text, line } = written(
    {
      detail: `tried ${SECRET} at ${encodeURIComponent(SECRET)}`,
      other: 'p@ssword, second-key, of-several',
    },
    `${SECRET}!`,
    secrets,
  );
  expect(text).not.toMatch(/hunter2|p@ssword|second-key|of-several/);
  expect(line.msg).toBe('[redacted]!');
});

test('child processes inherit no secret', () => {
  const env = {
    S3_SECRET_KEY: 's',
    DATABASE_URL: 'postgres://me:p@db,two/x',
    ADMIN_PASSWORD: SECRET,
    PATH: '/bin',
    REDIS_URL: 'redis://r',
    S3_ENDPOINT: 'http://s',
  };
  removeSecrets(env);
  expect(Object.keys(env)).toEqual(['PATH', 'REDIS_URL', 'S3_ENDPOINT']);
});
