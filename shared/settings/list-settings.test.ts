import { expect, test } from 'vitest';
import { listSettings } from './list-settings.ts';
import { SETTINGS } from './settings.ts';

test('tells each setting, where it is from, and no secret', () => {
  const listed = listSettings({
    PORT: '9000',
    HOST: '',
    SECRET_KEY: 'of the cookies',
    DATABASE_URL: 'postgres://windlass:of-the-database@db/windlass',
    REDIS_URL: 'redis://cache:6379',
    HOME: '/root',
  });
  expect(listed.map(({ name }) => name)).toEqual(Object.keys(SETTINGS));
  const of = (name: string) => listed.find(setting => setting.name === name);
  expect(of('PORT')).toMatchObject({ value: '9000', from: 'environment', secret: false });
  expect(of('HOST')).toMatchObject({ value: '127.0.0.1', from: 'default', secret: false });
  expect(of('SECRET_KEY')).toMatchObject({ value: null, from: 'environment', secret: true });
  expect(of('ADMIN_PASSWORD')).toMatchObject({ value: null, from: 'unset', secret: true });
  expect(of('DATABASE_URL')).toMatchObject({ value: null, from: 'environment', secret: true });
  expect(of('REDIS_URL')).toMatchObject({ value: 'redis://cache:6379', secret: false });
  for (const [name, value] of [
    ['REDIS_URL', 'redis://cache:6379?password=in+a+parameter'],
    ['OIDC_ISSUER', 'https://client:of-a-person@idp.example/realm'],
    ['DATABASE_DIRECT_URL', 'postgres://windlass@db/windlass?sslpassword=of-the-certificate'],
    ['DATABASE_URL', 'postgres://windlass:with/a/slash@db/windlass'],
  ] as const)
    expect(listSettings({ [name]: value }).find(setting => setting.name === name)).toMatchObject({
      value: null,
      from: 'environment',
      secret: true,
    });
  expect(JSON.stringify(listed)).not.toMatch(/of the cookies|of-the-database/);
});
