import { expect, test } from 'vitest';
import { waitFor } from '../harness/wait-for.ts';
import { expectWhole, launchCounts, waitForOutput } from './counting-commands.ts';
import { pidsNamed, type RunningStack, withHost } from './fault-host.ts';

/** The database and the queue's server become unreachable and come back: what was accepted ends, once. */
export function testLostServers(service: () => RunningStack, queue: 'postgres' | 'redis'): void {
  test(
    'Postgres killed: running commands end right, requests are answered 503 meanwhile',
    {
      timeout: 120_000,
    },
    () =>
      withHost(service(), async host => {
        const { stack, client } = service();
        const counts = await launchCounts(service(), host.sid, { commands: 8, seconds: 6 });
        await waitForOutput(service(), counts);
        const clients = () =>
          ['windlass-api', 'windlass-worker'].map(name => pidsNamed(stack, name));
        const before = clients();
        const answers: { status: number; retryAfter: string | null }[] = [];
        const note = ({ status, headers }: Response) =>
          void answers.push({ status, retryAfter: headers.get('Retry-After') });
        stack.kill('postgres');
        const late = launchCounts(service(), host.sid, { commands: 2, seconds: 1, onAnswer: note });
        await waitFor(
          async () => {
            // More at once than a pool has connections: each must survive that it was refused.
            const requests = Array.from({ length: 40 }, async () => {
              const signal = AbortSignal.timeout(20_000);
              const response = await client.fetch(`/api/jobs/${counts[0]?.id}`, { signal });
              note(response);
              await response.arrayBuffer();
              return response.ok;
            });
            const good = await Promise.all(requests);
            return good.every(Boolean) && answers.some(({ status }) => status === 503);
          },
          { what: 'answers after 503', timeoutMs: 60_000 },
        );
        await expectWhole(service(), host, [...counts, ...(await late)]);
        for (const { status, retryAfter } of answers) {
          expect([200, 202, 503]).toContain(status);
          if (status === 503) expect(retryAfter).toMatch(/^\d+$/);
        }
        // Whose connection breaks in the middle of a transaction does not die of it.
        expect(clients()).toEqual(before);
      }),
  );

  if (queue !== 'redis') return;

  test(
    'FLUSHALL among 30 commands, queued and running: each ends, none runs twice',
    {
      timeout: 150_000,
    },
    () =>
      withHost(service(), async host => {
        const counts = await launchCounts(service(), host.sid, { commands: 30, seconds: 4 });
        await waitForOutput(service(), counts.slice(0, 1));
        await service().stack.redis?.flushall();
        await expectWhole(service(), host, counts, 120_000);
      }),
  );

  test(
    'commands are accepted while Redis is down and end when it is back',
    {
      timeout: 150_000,
    },
    () =>
      withHost(service(), async host => {
        const redis = service().stack.redis;
        if (!redis) throw new Error('The stack has no Redis.');
        const before = await launchCounts(service(), host.sid, { commands: 4, seconds: 4 });
        await waitForOutput(service(), before);
        await redis.down();
        const statuses: number[] = [];
        const began = performance.now();
        const meanwhile = await launchCounts(service(), host.sid, {
          commands: 10,
          seconds: 1,
          onAnswer: ({ status }) => void statuses.push(status),
        });
        expect(statuses).toEqual(Array(10).fill(202));
        expect(performance.now() - began).toBeLessThan(30_000);
        // What was started before needs no queue to end.
        await expectWhole(service(), host, before);
        await redis.up();
        await expectWhole(service(), host, meanwhile);
      }),
  );
}
