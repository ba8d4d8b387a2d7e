import { expect, test } from 'vitest';
import { translatePostgresError, translateSystemError } from './translate-errors.ts';

const explain = (output: string, code: number | undefined = 1) =>
  translatePostgresError({ output, task: 'start', directory: '/data/postgres', code });

/** The lines are those that PostgreSQL 18 writes. */
test.each([
  [
    'FATAL:  could not write lock file "postmaster.pid": No space left on device',
    'the disk of /data/postgres is full.',
  ],
  [
    'initdb: error: could not look up effective user ID 4242: user does not exist',
    'user id 4242 has no entry in /etc/passwd.',
  ],
  [
    'FATAL:  could not open file "global/pg_filenode.map": Permission denied',
    'its user may not use global/pg_filenode.map.',
  ],
  [
    'FATAL:  data directory "/data/postgres" has wrong ownership',
    'its user may not use /data/postgres.',
  ],
  [
    'FATAL:  could not map anonymous shared memory: Cannot allocate memory\nHINT:  This error usually means',
    'the machine has no memory left for it.',
  ],
  [
    'LOG:  invalid checkpoint record\nPANIC:  could not locate a valid checkpoint record at 0/1526AE8',
    'the database in /data/postgres is damaged.',
  ],
])('%s', (output, message) => {
  expect(explain(output).message).toBe(`Postgres could not start: ${message}`);
  expect(explain(output).hint).toMatch(/\.$/);
});

test('an unknown failure is reported with the last message of Postgres', () => {
  const output =
    '2026-11-21 10:43:27.015 UTC [7] LOG:  starting\n2026-11-21 10:43:27 UTC [7] FATAL:  no idea\n';
  expect(explain(output).message).toBe('Postgres could not start: no idea.');
  expect(explain('', 137).message).toBe('Postgres could not start: it was killed by signal 9.');
});

test('errors of the file system name the path', () => {
  const error = Object.assign(new Error('EACCES'), { code: 'EACCES', path: '/data/lock' });
  expect(translateSystemError(error, '/data')).toMatchObject({
    message: '/data/lock cannot be used: permission denied.',
  });
  const other = new Error('a mistake of ours');
  expect(translateSystemError(other, '/data')).toBe(other);
});
