import { expect, test } from 'vitest';
import { addressOf, hostsOf, splitHosts, targetOf, withoutOurs } from './host-urls.ts';

test('a URL of several hosts is one URL for each', () => {
  const url = 'postgres://me:p%40ss,1@one:5433,two,[::1]:5434/name?sslmode=require';
  expect(splitHosts(url)).toEqual([
    'postgres://me:p%40ss,1@one:5433/name?sslmode=require',
    'postgres://me:p%40ss,1@two/name?sslmode=require',
    'postgres://me:p%40ss,1@[::1]:5434/name?sslmode=require',
  ]);
  expect(hostsOf(url)).toBe('one:5433,two,[::1]:5434');
});

test('what the drivers understand in ways of their own is not given to them', () => {
  const url =
    'postgres://one,two/name?target_session_attrs=read-write&sslmode=require&options=-c%20a=b&sslrootcert=/ca';
  expect(targetOf(url)).toBe('read-write');
  expect(splitHosts(url).map(withoutOurs)).toEqual([
    'postgres://one/name?options=-c+a%3Db',
    'postgres://two/name?options=-c+a%3Db',
  ]);
});

test('an address is that of the URL, without the brackets of IPv6', () => {
  expect(addressOf('postgres://me:p@[2001:db8::1]:5434/name')).toEqual({
    host: '2001:db8::1',
    port: 5434,
  });
  expect(addressOf('postgres://me:p@one/name')).toEqual({ host: 'one', port: 5432 });
  expect(addressOf('postgres:///name?host=/run')).toBeUndefined();
});

test('a URL of one host is left as it is', () => {
  for (const url of ['postgres://me:p@one:5433/name', 'postgres:///name?host=/run', 'nonsense'])
    expect(splitHosts(url).map(withoutOurs)).toEqual([url]);
  expect(targetOf('postgres://one/name')).toBeNull();
});
