import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Floods } from './floods.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }));
afterEach(() => void vi.useRealTimers());

test('twenty refusals in a second stop a sender', () => {
  const floods = new Floods();
  for (let n = 0; n < 20; n++) {
    expect(floods.includes('192.0.2.1')).toBe(false);
    floods.count('192.0.2.1');
  }
  expect(floods.includes('192.0.2.1')).toBe(true);
  expect(floods.includes('192.0.2.2')).toBe(false);
  vi.advanceTimersByTime(1_999);
  expect(floods.includes('192.0.2.1')).toBe(true);
  vi.advanceTimersByTime(1);
  expect(floods.includes('192.0.2.1')).toBe(false);
});

test('a flood is refused as long as it goes on, and one that becomes a trickle is let in', () => {
  const floods = new Floods();
  const attempt = () => {
    const isRefused = floods.includes('192.0.2.1');
    floods.count('192.0.2.1');
    return isRefused;
  };
  const letIn = (perSecond: number) => {
    const refusals = Array.from({ length: perSecond }, attempt);
    vi.advanceTimersByTime(1_000);
    return refusals.filter(isRefused => !isRefused).length;
  };
  expect([100, 100, 20, 100, 19, 19, 19].map(letIn)).toEqual([20, 0, 0, 0, 0, 19, 19]);
});

test('two attempts a second pass', () => {
  const floods = new Floods();
  const pass = () => Array.from({ length: 3 }, () => floods.pass('192.0.2.1'));
  expect(pass()).toEqual([true, true, false]);
  expect(floods.pass('192.0.2.2')).toBe(true);
  vi.advanceTimersByTime(1_000);
  expect(pass()).toEqual([true, true, false]);
});
