import type { Request, Response } from 'express';
import { afterEach, expect, test, vi } from 'vitest';
import { limitRequests } from './limit-requests.ts';

afterEach(() => {
  vi.useRealTimers();
});

function counter(perSecond: number): (username: string) => boolean {
  const handle = limitRequests(perSecond);
  return username => {
    let passed = false;
    const res = { locals: { user: { username, administrator: false } } };
    handle({} as Request, res as unknown as Response, () => {
      passed = true;
    });
    return passed;
  };
}

test('counts the requests of each user in each second', () => {
  vi.useFakeTimers({ now: 1_000_000 });
  const ask = counter(3);
  expect([ask('a'), ask('a'), ask('a')]).toEqual([true, true, true]);
  expect(() => ask('a')).toThrow(
    expect.objectContaining({ code: 'too_many_requests', headers: { 'Retry-After': '1' } }),
  );
  expect(ask('b')).toBe(true);
  vi.setSystemTime(1_000_999);
  expect(() => ask('a')).toThrow();
  vi.setSystemTime(1_001_000);
  expect(ask('a')).toBe(true);
});

test('0 lifts the limit', () => {
  const ask = counter(0);
  for (let i = 0; i < 10_000; i++) expect(ask('a')).toBe(true);
});
