import type { Request, Response } from 'express';
import { afterEach, expect, test, vi } from 'vitest';
import { RequestRates } from '../concurrency/request-rates.ts';
import { limitRequests } from './limit-requests.ts';

afterEach(() => {
  vi.useRealTimers();
});

function counter(perSecond: number) {
  const rates = new RequestRates(perSecond);
  const handle = limitRequests(rates, perSecond);
  const ask = (username: string) => {
    let passed = false;
    const req = { headers: { authorization: `of ${username}` } };
    const res = { locals: { user: { username, administrator: false } } };
    handle(req as Request, res as unknown as Response, () => {
      passed = true;
    });
    return passed;
  };
  return { ask, rates };
}

test('counts the requests of each user in each second', () => {
  vi.useFakeTimers({ toFake: ['performance'], now: 0 });
  const { ask, rates } = counter(3);
  expect([ask('a'), ask('a'), ask('a')]).toEqual([true, true, true]);
  expect(rates.isRefused('of a')).toBe(false);
  expect(() => ask('a')).toThrow(
    expect.objectContaining({ code: 'too_many_requests', headers: { 'Retry-After': '1' } }),
  );
  expect(rates.isRefused('of a')).toBe(true);
  expect(ask('b')).toBe(true);
  expect(rates.isRefused('of b')).toBe(false);
  vi.advanceTimersByTime(999);
  expect(() => ask('a')).toThrow();
  vi.advanceTimersByTime(1);
  expect(rates.isRefused('of a')).toBe(false);
  expect(ask('a')).toBe(true);
});

test('0 lifts the limit', () => {
  const { ask } = counter(0);
  for (let i = 0; i < 10_000; i++) expect(ask('a')).toBe(true);
});
