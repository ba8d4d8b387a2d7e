import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { waitFor } from '../harness/wait-for.ts';
import {
  expectWhole,
  launchCounts,
  launchEndlessCount,
  launchSurely,
  readLedger,
  waitForOutput,
} from './counting-commands.ts';
import { followEvents, nothingSeen } from './events.ts';
import { type FaultHost, type RunningStack, withHost } from './fault-host.ts';
import { isFull } from './settings.ts';

/** `seq 1 LAST` prints some 23 MB. */
const LAST = 3_000_000;

/** What an API may take to start and its clients to come back, on a machine that much else keeps busy: 5 s were seen. */
const AGAIN_MS = 30_000;

/** The ways to the clients and to the hosts break: work goes on behind, and whoever comes back misses nothing. */
export function testLostLinks(service: () => RunningStack): void {
  test(
    'the API killed: the launch goes on, events resume without a gap or a repeat',
    {
      timeout: 120_000,
    },
    () =>
      withHost(service(), async host => {
        const { stack, client } = service();
        const count = await launchEndlessCount(service(), host, host.sid);
        const seen = nothingSeen();
        const followed = followEvents(client, count.id, seen);
        const waiting = launchAndWait(service(), host);
        // Each connection brings something before it breaks.
        const followsAnew = async (connections: number) => {
          const { length } = seen.stdout;
          await waitFor(() => seen.connections === connections && seen.stdout.length > length, {
            what: `events over connection ${connections}`,
            timeoutMs: AGAIN_MS,
          });
        };
        for (const connections of [1, 2]) {
          await followsAnew(connections);
          stack.kill('windlass-api');
          // Some answer before that, and so know of nothing that broke.
          await waitFor(async () => (await stack.api('/readyz')).ok, {
            what: 'the API to be back',
            timeoutMs: AGAIN_MS,
          });
        }
        await followsAnew(3);
        for (const { stop } of [count, waiting]) stop();
        await count.expectWhole(AGAIN_MS);
        await followed;
        expect(seen).toMatchObject({ jumps: [], state: 'succeeded', connections: 3 });
        expect(seen.stdout).toBe(String(await readOutput(client, count.id)));
        expect(seen.stderr).toBe(String(await readOutput(client, count.id, 'stderr')));
        const { answer, broken } = await waiting.answered;
        expect(answer).toMatchObject({ output: 'begun\nended\n', returncode: 0 });
        expect(broken).toBeGreaterThan(0);
      }),
  );

  test(
    'the link to the host cut: with an agent each command runs once and all of its output comes',
    {
      timeout: 120_000,
    },
    () =>
      withHost(service(), async host => {
        const counts = await launchCounts(service(), host.sid, { commands: 4, seconds: 6 });
        await waitForOutput(service(), counts);
        host.proxy.cut();
        const { id } = await launchSurely(service(), host.sid, `seq 1 ${LAST}`);
        for (let cuts = 0; cuts < (isFull ? 8 : 3); cuts++) {
          // In the middle of what one commit of output holds, or of the next.
          const before = host.proxy.connections.total;
          host.proxy.cutAfter('down', 1_800_000);
          await waitFor(() => host.proxy.connections.total > before, {
            what: 'the link to be cut and made again',
            timeoutMs: 30_000,
          });
        }
        expect(await waitForEnd(service().client, id, 60_000)).toMatchObject({
          state: 'succeeded',
        });
        expect(digest(await readOutput(service().client, id))).toBe(digest(countTo(LAST)));
        await expectWhole(service(), host, counts);
      }),
  );

  if (isFull) {
    test('the link to the host silent: noticed, and made anew', { timeout: 180_000 }, () =>
      withHost(service(), async host => {
        const counts = await launchCounts(service(), host.sid, { commands: 4, seconds: 8 });
        await waitForOutput(service(), counts);
        const before = host.proxy.connections.total;
        host.proxy.blackhole();
        await waitFor(() => host.proxy.connections.total > before, {
          what: 'a worker to give the silent link up',
          timeoutMs: 60_000,
        });
        host.proxy.heal();
        await expectWhole(service(), host, counts);
      }),
    );
  }

  test(
    'sshd stopped and started: commands go on, and what waited for it runs',
    {
      timeout: 120_000,
    },
    () =>
      withHost(service(), async host => {
        const counts = await launchCounts(service(), host.sid, { commands: 4, seconds: 5 });
        await waitForOutput(service(), counts);
        await host.sshd.down();
        const late = await launchCounts(service(), host.sid, { commands: 2, seconds: 1 });
        await waitFor(() => late.every(({ id }) => isConnectingAgain(service().stack.log(), id)), {
          what: 'the late commands to be refused by the host',
        });
        await host.sshd.up();
        await expectWhole(service(), host, [...counts, ...late]);
      }),
  );

  test(
    'without an agent a cut link leaves the outcome unknown and never a second run',
    {
      timeout: 120_000,
    },
    () =>
      withHost(
        service(),
        async host => {
          const counts = await launchCounts(service(), host.plain, { commands: 3, seconds: 6 });
          await waitForOutput(service(), counts);
          host.proxy.cut();
          for (const { id, ledger } of counts) {
            expect(await waitForEnd(service().client, id, 30_000)).toMatchObject({
              state: 'failed',
              error: { code: 'outcome_unknown' },
            });
            const lines = readLedger(host, ledger).trim().split('\n');
            expect(lines).toEqual(lines.map((_, i) => String(i + 1)));
          }
        },
        { plain: true },
      ),
  );
}

interface HeldLaunch {
  /** Has its command end. */
  stop(): void;
  answered: Promise<{ answer: unknown; broken: number }>;
}

/** A launch that is held until its command is told to end, asked again with its key whenever the answer breaks off. */
function launchAndWait({ client }: RunningStack, { sid, sshd }: FaultHost): HeldLaunch {
  const key = randomUUID();
  const command = `cd; echo begun; until test -e ${key}; do sleep 0.1; done; echo ended`;
  let broken = 0;
  const answer = waitFor(
    async () => {
      try {
        const response = await client.fetch('/api/remotes/launch', {
          method: 'POST',
          headers: { 'Idempotency-Key': key },
          body: JSON.stringify({ sid, command }),
        });
        return response.status === 200 && (await response.json());
      } catch (error) {
        broken++;
        throw error;
      }
    },
    { what: 'the answer of the launch', timeoutMs: 3 * AGAIN_MS, intervalMs: 100 },
  );
  return {
    stop: () => writeFileSync(join(sshd.home, key), ''),
    answered: answer.then(value => ({ answer: value, broken })),
  };
}

/** Whether a worker has logged that it tries again to reach this job's host. */
function isConnectingAgain(log: string, job: string): boolean {
  return log
    .split('\n')
    .some(line => line.includes('"msg":"connecting again"') && line.includes(`"job":"${job}"`));
}

function countTo(last: number): string {
  return Array.from({ length: last }, (_, i) => `${i + 1}\n`).join('');
}

/** A difference of 23 MB is not worth printing. */
function digest(bytes: Buffer | string): string {
  return `${bytes.length} bytes, ${createHash('sha256').update(bytes).digest('hex')}`;
}
