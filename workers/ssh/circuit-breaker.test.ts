import { afterEach, expect, test, vi } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { CircuitBreaker, CircuitBreakers } from './circuit-breaker.ts';
import { DroppedBeforeLogin } from './dial.ts';

const unreachable = () => new WindlassError('remote_connection_failed', { detail: 'refused.' });
const never = () => new AbortController().signal;

/** Attempts that end when the test says so. */
class Attempts {
  readonly open: { succeed(): void; fail(error: Error): void }[] = [];
  made = 0;
  readonly make = () => {
    this.made++;
    return new Promise<string>((resolve, reject) => {
      this.open.push({ succeed: () => resolve('connected'), fail: reject });
    });
  };
}

async function openCircuit(breaker: CircuitBreaker): Promise<void> {
  while (breaker.state === 'closed')
    await breaker.execute(() => Promise.reject(unreachable()), never()).catch(() => 'as it should');
}

const settled = () => new Promise(resolve => setImmediate(resolve));

test('no more attempts than the limit run at once, and all of them run', async () => {
  const breaker = new CircuitBreaker(2);
  const attempts = new Attempts();
  const all = Promise.all(Array.from({ length: 5 }, () => breaker.execute(attempts.make, never())));
  for (let done = 0; done < 5; done++) {
    await settled();
    expect(attempts.made).toBe(Math.min(5, done + 2));
    attempts.open.shift()?.succeed();
  }
  expect(await all).toEqual(Array.from({ length: 5 }, () => 'connected'));
});

test('while the circuit is open one attempt is the probe, and all others fail with its error', async () => {
  const breaker = new CircuitBreaker(4);
  await openCircuit(breaker);
  const attempts = new Attempts();
  const crowd = Promise.allSettled(
    Array.from({ length: 20 }, () => breaker.execute(attempts.make, never())),
  );
  await expect.poll(() => attempts.made, { timeout: 10_000 }).toBe(1);
  const error = unreachable();
  attempts.open[0]?.fail(error);
  expect(await crowd).toEqual(
    Array.from({ length: 20 }, () => ({ status: 'rejected', reason: error })),
  );
  expect(attempts.made).toBe(1);
});

test('a probe that reaches the host closes the circuit, and all who wait go', async () => {
  const breaker = new CircuitBreaker(4);
  await openCircuit(breaker);
  const attempts = new Attempts();
  const crowd = Promise.all(
    Array.from({ length: 3 }, () => breaker.execute(attempts.make, never())),
  );
  await expect.poll(() => attempts.made, { timeout: 10_000 }).toBe(1);
  attempts.open[0]?.succeed();
  await settled();
  expect([breaker.state, attempts.made]).toEqual(['closed', 3]);
  for (const attempt of attempts.open) attempt.succeed();
  expect(await crowd).toHaveLength(3);
});

test('attempts that fail together open the circuit once', async () => {
  const breaker = new CircuitBreaker(4);
  const attempts = new Attempts();
  const crowd = Promise.allSettled(
    Array.from({ length: 4 }, () => breaker.execute(attempts.make, never())),
  );
  await settled();
  for (const attempt of attempts.open) attempt.fail(unreachable());
  await crowd;
  expect(breaker.state).toBe('open');
  const probe = new Attempts();
  const next = breaker.execute(probe.make, never());
  await expect.poll(() => probe.made, { timeout: 10_000 }).toBe(1);
  probe.open[0]?.succeed();
  expect(await next).toBe('connected');
});

test('a refused login proves that the host is reachable', async () => {
  const breaker = new CircuitBreaker(4);
  const refused = new WindlassError('remote_authentication_failed');
  for (let n = 0; n < 5; n++)
    await expect(breaker.execute(() => Promise.reject(refused), never())).rejects.toBe(refused);
  expect(breaker.state).toBe('closed');
  await openCircuit(breaker);
  await expect(breaker.execute(() => Promise.reject(refused), never())).rejects.toBe(refused);
  expect(breaker.state).toBe('closed');
});

test('an attempt that is aborted while it waits takes no permit', async () => {
  const breaker = new CircuitBreaker(1);
  const attempts = new Attempts();
  const first = breaker.execute(attempts.make, never());
  const leaving = new AbortController();
  const second = breaker.execute(attempts.make, leaving.signal);
  const third = breaker.execute(attempts.make, never());
  leaving.abort(new Error('left'));
  await expect(second).rejects.toThrow('left');
  attempts.open.shift()?.succeed();
  await settled();
  expect(attempts.made).toBe(2);
  attempts.open.shift()?.succeed();
  expect(await Promise.all([first, third])).toEqual(['connected', 'connected']);
});

test('two entries of one host share a circuit breaker; behind another jump host its address is another machine', () => {
  const breakers = new CircuitBreakers(4);
  const host = { address: 'login.example', port: 22 };
  const [gate, other] = [
    { address: 'gate.example', port: 22 },
    { address: 'gate.example', port: 23 },
  ];
  expect(breakers.of([host])).toBe(breakers.of([{ ...host }]));
  expect(breakers.of([gate, host])).toBe(breakers.of([gate, { ...host }]));
  const all = [[host], [{ ...host, port: 23 }], [gate, host], [other, host]];
  expect(new Set(all.map(hops => breakers.of(hops))).size).toBe(all.length);
});

afterEach(() => {
  vi.useRealTimers();
});

test.each([
  ['refuses connections is asked again within 6 s, however long that lasts', undefined, 6_000],
  ['drops connections before the login is asked more and more slowly', 'dropped', 15_000],
] as const)('a host that %s', async (_, dropped, longest) => {
  vi.useFakeTimers();
  const breaker = new CircuitBreaker(4);
  const cause = dropped && new DroppedBeforeLogin('closed');
  const fail = () =>
    Promise.reject(
      new WindlassError('remote_connection_failed', { detail: 'unreachable.', cause }),
    );
  const probes: number[] = [];
  const attempt = () => {
    probes.push(performance.now());
    return fail();
  };
  while (probes.length < 14) {
    const probe = breaker.execute(attempt, never()).catch(() => 'as it should');
    await vi.runAllTimersAsync();
    await probe;
  }
  const waits = probes.map((at, n) => at - (probes[n - 1] ?? at)).slice(-4);
  for (const wait of waits) {
    expect(wait).toBeLessThanOrEqual(longest + 10);
    expect(wait).toBeGreaterThanOrEqual(longest / 2);
  }
});
