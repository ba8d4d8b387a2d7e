import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors.ts';
import { CircuitBreaker, CircuitBreakers } from './circuit-breaker.ts';

const away = () => new WindlassError('remote_connection_failed', { detail: 'refused.' });
const patiently = () => new AbortController().signal;

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

async function shut(gate: CircuitBreaker): Promise<void> {
  while (!gate.isOpen)
    await gate.pass(() => Promise.reject(away()), patiently()).catch(() => 'as it should');
}

const settled = () => new Promise(resolve => setImmediate(resolve));

test('no more connections than the limit are made at once, and all get their turn', async () => {
  const gate = new CircuitBreaker(2);
  const attempts = new Attempts();
  const all = Promise.all(Array.from({ length: 5 }, () => gate.pass(attempts.make, patiently())));
  for (let done = 0; done < 5; done++) {
    await settled();
    expect(attempts.made).toBe(Math.min(5, done + 2));
    attempts.open.shift()?.succeed();
  }
  expect(await all).toEqual(Array.from({ length: 5 }, () => 'connected'));
});

test('of a crowd before a host that is away one goes, and its error is that of all', async () => {
  const gate = new CircuitBreaker(4);
  await shut(gate);
  const attempts = new Attempts();
  const crowd = Promise.allSettled(
    Array.from({ length: 20 }, () => gate.pass(attempts.make, patiently())),
  );
  await expect.poll(() => attempts.made, { timeout: 10_000 }).toBe(1);
  const error = away();
  attempts.open[0]?.fail(error);
  expect(await crowd).toEqual(
    Array.from({ length: 20 }, () => ({ status: 'rejected', reason: error })),
  );
  expect(attempts.made).toBe(1);
});

test('a probe that reaches the host opens the gate for those who wait', async () => {
  const gate = new CircuitBreaker(4);
  await shut(gate);
  const attempts = new Attempts();
  const crowd = Promise.all(Array.from({ length: 3 }, () => gate.pass(attempts.make, patiently())));
  await expect.poll(() => attempts.made, { timeout: 10_000 }).toBe(1);
  attempts.open[0]?.succeed();
  await settled();
  expect([gate.isOpen, attempts.made]).toEqual([false, 3]);
  for (const attempt of attempts.open) attempt.succeed();
  expect(await crowd).toHaveLength(3);
});

test('those who set out together and fail together count as one wait', async () => {
  const gate = new CircuitBreaker(4);
  const attempts = new Attempts();
  const crowd = Promise.allSettled(
    Array.from({ length: 4 }, () => gate.pass(attempts.make, patiently())),
  );
  await settled();
  for (const attempt of attempts.open) attempt.fail(away());
  await crowd;
  expect(gate.isOpen).toBe(true);
  const probe = new Attempts();
  const next = gate.pass(probe.make, patiently());
  await expect.poll(() => probe.made, { timeout: 10_000 }).toBe(1);
  probe.open[0]?.succeed();
  expect(await next).toBe('connected');
});

test('a refused login proves that the host is there', async () => {
  const gate = new CircuitBreaker(4);
  const refused = new WindlassError('remote_authentication_failed');
  for (let n = 0; n < 5; n++)
    await expect(gate.pass(() => Promise.reject(refused), patiently())).rejects.toBe(refused);
  expect(gate.isOpen).toBe(false);
  await shut(gate);
  await expect(gate.pass(() => Promise.reject(refused), patiently())).rejects.toBe(refused);
  expect(gate.isOpen).toBe(false);
});

test('who leaves takes no place', async () => {
  const gate = new CircuitBreaker(1);
  const attempts = new Attempts();
  const first = gate.pass(attempts.make, patiently());
  const leaving = new AbortController();
  const second = gate.pass(attempts.make, leaving.signal);
  const third = gate.pass(attempts.make, patiently());
  leaving.abort(new Error('left'));
  await expect(second).rejects.toThrow('left');
  attempts.open.shift()?.succeed();
  await settled();
  expect(attempts.made).toBe(2);
  attempts.open.shift()?.succeed();
  expect(await Promise.all([first, third])).toEqual(['connected', 'connected']);
});

test('two entries of one host share its gate', () => {
  const gates = new CircuitBreakers(4);
  const host = { address: 'login.example', port: 22 };
  expect(gates.of(host)).toBe(gates.of({ ...host }));
  expect(gates.of(host)).not.toBe(gates.of({ ...host, port: 23 }));
});
