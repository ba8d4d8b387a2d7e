import { expect, test } from 'vitest';
import { findMisspelt } from './misspelt.ts';
import { SETTINGS } from './settings.ts';

test('a setting with a letter too many, too few, changed or swapped is told', () => {
  for (const [name, meant] of [
    ['JOB_RETENTION_DAY', 'JOB_RETENTION_DAYS'],
    ['JOB_RETENTOIN_DAYS', 'JOB_RETENTION_DAYS'],
    ['S3_BUKET', 'S3_BUCKET'],
    ['SESION_IDLE_TIMOUT', 'SESSION_IDLE_TIMEOUT'],
    ['LIMIT_OPEN_JOB', 'LIMIT_OPEN_JOBS'],
    ['LIMIT_SHARES', 'LIMIT_SHARE'],
    // The database that this one names would be left aside.
    ['DATABASE_URI', 'DATABASE_URL'],
    ['LOGLEVEL', 'LOG_LEVEL'],
  ] as const)
    expect(findMisspelt({ [name]: '0' })).toEqual([`${name} is no setting. Is ${meant} meant?`]);
  expect(findMisspelt({ LIMIT_ELSEWHERE: '1' })).toEqual([
    'LIMIT_ELSEWHERE is no setting: see docs/settings.md.',
  ]);
});

test('variables of other programs are not taken for settings', () => {
  const others =
    'PORTS HOSTS HOSTNAME POST PROFILE APP_USER API_USERS DATA_DIRS S3_ENDPOINT_URL S3_USE_SSL AWS_REGION AWS_ACCESS_KEY_ID XDG_DATA_DIRS LOGNAME REDIS_HOST DATABASE_HOST SECRET_KEY_BASE POSTGRES_PASSWORD REDIS_PASSWORD S3_ROOT_PASSWORD NODE_OPTIONS npm_config_cache NODE_EXTRA_CA_CERTS LIMIT_NOFILE LIMIT_NPROC LIMIT_CORE LIMIT_MEMLOCK LIMIT_CPU LIMIT_MEMORY LOG_RETENTION_DAYS LOG_FORMAT REDIS_TLS_URL DATABASE_PRIVATE_URL S3_BUCKET_NAME S3_ACCESS_KEY_ID PUBLIC_HOST REDIS_PORT SESSION_ID SESSION_MANAGER JOB_NAME LISTEN_FDS REMOTE_ADDR';
  expect(findMisspelt(Object.fromEntries(others.split(' ').map(name => [name, 'x'])))).toEqual([]);
  expect(findMisspelt(Object.fromEntries(Object.keys(SETTINGS).map(name => [name, '1'])))).toEqual(
    [],
  );
  // Who set the right one has the other for something else.
  expect(findMisspelt({ DATABASE_URI: 'x', DATABASE_URL: 'y' })).toEqual([]);
  expect(findMisspelt({ LOGLEVEL: 'x', LOG_LEVEL: 'warn' })).toEqual([]);
  expect(findMisspelt({ S3_BUKET: '' })).toEqual([]);
});

test('in a file of settings every other name is told, but for those of tools', () => {
  const file = {
    PORTS: '1',
    port: '2',
    MY_OWN: '3',
    NODE_EXTRA_CA_CERTS: 'x',
    OWNER_PASSWORD: 'x',
    LIMIT_NOFILE: '1',
  };
  expect(findMisspelt({ ...file, PATH: '/bin' }, Object.keys(file))).toEqual([
    'PORTS is no setting. Is PORT meant?',
    'port is no setting. Is PORT meant?',
    'MY_OWN is no setting: see docs/settings.md.',
  ]);
});
