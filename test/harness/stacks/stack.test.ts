import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { describeUnless, missingPrograms } from '../skip.ts';
import { waitFor } from '../wait-for.ts';
import { startStack } from './stack.ts';
import { useStarted } from './use-stack.ts';

const NAMES = ['supervisor', 'postgres', 'windlass-api', 'windlass-worker'];

describe('the stack of the tests', () => {
  const stack = useStarted(() => startStack());

  const countNamed = (name: string) => stack.pids().filter(entry => entry.name === name).length;

  test('serves, and answers the administrator', async () => {
    expect((await fetch(`${stack.url}/readyz`)).status).toBe(200);
    const me = await stack.api('/api/users/-');
    expect([me.status, await me.json()]).toMatchObject([200, { username: 'admin' }]);
    expect((await fetch(`${stack.url}/api/users/-`)).status).toBe(401);
  });

  test('names its processes', () => {
    for (const name of NAMES) expect([name, countNamed(name)]).not.toEqual([name, 0]);
  });

  test('has a killed process started again', async () => {
    const [killed] = stack.kill('windlass-api');
    await waitFor(() => stack.pids().every(entry => entry.pid !== killed), { what: 'its end' });
    await waitFor(async () => (await stack.api('/readyz')).status === 200, { what: 'the API' });
    expect(() => stack.kill('windlass-nothing')).toThrow('The stack runs no windlass-nothing');
  });

  test('comes up again on its data after its supervisor was killed', async () => {
    stack.kill('supervisor');
    await waitFor(() => stack.pids().length === 0, {
      what: 'what the supervisor had started to end',
      timeoutMs: 30_000,
    });
    await stack.up();
    expect((await stack.api('/api/users/-')).status).toBe(200);
  });

  test('leaves no process and no file', async () => {
    await stack.stop();
    expect(stack.pids()).toEqual([]);
    expect(existsSync(stack.dataDir)).toBe(false);
  });
});

describeUnless(missingPrograms('redis-server'), 'the stack of the tests on Redis', () => {
  test('serves', async () => {
    const stack = await startStack({ redis: true });
    try {
      expect((await fetch(`${stack.url}/readyz`)).status).toBe(200);
    } finally {
      await stack.stop();
    }
  });
});

test('a stack that cannot start says why and leaves nothing', async () => {
  const broken = startStack({ env: { PORT: 'seventeen' } });
  await expect(broken).rejects.toThrow(/did not start[\s\S]*PORT/);
});
