import { beforeAll, expect, test } from 'vitest';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { readMetrics, sum } from '../harness/stacks/metrics.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MIB = 1 << 20;
const LAUNCHES = 100;

describeStack(missingPrograms('sshd'), 'launches that are waited for', form => {
  // The commands wait for each other, and their requests for them.
  const { stack, client, sshd } = useRemoteStack(form, {
    env: { REMOTE_SLOTS: '1' },
    alone: 'measures the memory of its processes',
  });
  const database = useStackDatabase(stack);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  const heapUsed = async () => sum(await readMetrics(client), 'nodejs_heap_size_used_bytes');

  test('a long command is in the answer, whole', async () => {
    const command = `: ${`'ü漢😀"\\\n' `.repeat(8_000)}`;
    expect(await client.post('/api/remotes/launch', { sid, command })).toMatchObject({
      command,
      returncode: 0,
    });
  });

  test('the API holds nothing of their standard input once their jobs are stored', async () => {
    const before = await heapUsed();
    const leave = new AbortController();
    const stdin = 'x'.repeat(MIB);
    const body = JSON.stringify({ sid, command: 'sleep 600', stdin });
    const launch = () =>
      client.fetch('/api/remotes/launch', { method: 'POST', body, signal: leave.signal });
    const answers = Promise.allSettled(Array.from({ length: LAUNCHES }, launch));
    const open = async () => {
      const [row] = await database`select count(*)::int as n from jobs where finished is null`;
      return row?.n;
    };
    await waitFor(async () => (await open()) === LAUNCHES, {
      what: 'the jobs of the launches',
      timeoutMs: 60_000,
    });
    // The collector comes when something is allocated, such as a launch that is refused.
    const refused = JSON.stringify({ sid: 'none', command: 'true', stdin });
    const churn = () => client.fetch('/api/remotes/launch', { method: 'POST', body: refused });
    await waitFor(
      async () => {
        for (let n = 0; n < 5; n++) await (await churn()).text();
        return (await heapUsed()) - before < 40 * MIB;
      },
      { what: 'the heap to hold less than 40 MiB more', timeoutMs: 100_000 },
    );
    expect(await open()).toBe(LAUNCHES);
    leave.abort();
    await answers;
    await client.delete(`/api/remotes/${sid}`);
  }, 170_000);
});
