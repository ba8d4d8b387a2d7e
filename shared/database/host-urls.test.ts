import { expect, test } from 'vitest';
import { hostsOf, splitHosts, targetOf } from './host-urls.ts';

test('a URL of several hosts is one URL for each', () => {
  const url = 'postgres://me:p%40ss,1@one:5433,two,[::1]:5434/name?sslmode=require';
  expect(splitHosts(url)).toEqual([
    'postgres://me:p%40ss,1@one:5433/name?sslmode=require',
    'postgres://me:p%40ss,1@two/name?sslmode=require',
    'postgres://me:p%40ss,1@[::1]:5434/name?sslmode=require',
  ]);
  expect(hostsOf(url)).toBe('one:5433,two,[::1]:5434');
});

test('target_session_attrs is not given to the drivers', () => {
  const url = 'postgres://one,two/name?target_session_attrs=read-write&sslmode=require';
  expect(targetOf(url)).toBe('read-write');
  expect(splitHosts(url)).toEqual([
    'postgres://one/name?sslmode=require',
    'postgres://two/name?sslmode=require',
  ]);
});

test('a URL of one host is left as it is', () => {
  for (const url of ['postgres://me:p@one:5433/name', 'postgres:///name?host=/run', 'nonsense'])
    expect(splitHosts(url)).toEqual([url]);
  expect(targetOf('postgres://one/name')).toBeNull();
});
