import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { launchEndlessCount, launchSurely } from '../faults/counting-commands.ts';
import { type FaultHost, withHost } from '../faults/fault-host.ts';
import { drawLongFilm, expectWholeVideo, startVideo } from '../faults/long-videos.ts';
import { isFull, withSeed } from '../faults/settings.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { type Job, launchAsync, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What it may take after a fault is gone until everything works again. */
const WORKS_AGAIN_MS = 20_000;
const SILENT_MS = 30_000;
/** Bytes that may have been printed before a fault and be stored just after it: a line is a few, five come in a second. */
const IN_FLIGHT = 50;
/** Longer than a connection is tried for. */
const UNREACHABLE_MS = 70_000;

/** Outages that take their time, all at once: each has a host of its own, and the workers are the same two. */
describeStack(missingPrograms('sshd', 'ffmpeg'), 'long outages of hosts', form => {
  const service = useStack(form);

  /** What is asked for once the fault is gone is done in time. */
  async function expectUse({ sid }: FaultHost): Promise<void> {
    const { id } = await launchAsync(service.client, sid, 'echo works');
    expect(await waitForEnd(service.client, id, WORKS_AGAIN_MS)).toMatchObject({
      state: 'succeeded',
    });
    expect(String(await readOutput(service.client, id))).toBe('works\n');
  }

  test.concurrent('a link that is silent for 30 s', { timeout: 180_000 }, () =>
    withHost(service, async host => {
      const count = await launchEndlessCount(service, host, host.sid);
      const { total } = host.proxy.connections;
      const since = performance.now();
      host.proxy.blackhole();
      const late = await launchAsync(service.client, host.sid, 'echo x >>"$HOME/late"; echo late');
      // A link that says nothing is given up, whether or not it comes back.
      await waitFor(() => host.proxy.connections.total > total, {
        what: 'a worker to give the silent link up',
        timeoutMs: SILENT_MS,
      });
      await delay(Math.max(0, SILENT_MS - (performance.now() - since)));
      count.stop();
      host.proxy.heal();
      await Promise.all([count.expectWhole(WORKS_AGAIN_MS), expectUse(host)]);
      expect(await waitForEnd(service.client, late.id, WORKS_AGAIN_MS)).toMatchObject({
        state: 'succeeded',
      });
      expect(readFileSync(join(host.sshd.home, 'late'), 'utf8')).toBe('x\n');
    }),
  );

  // As behind a firewall that forgot it: a new link passes at once, and only silence tells that the old one is none.
  test.concurrent('a link that is silent for ever', { timeout: 180_000 }, () =>
    withHost(service, async host => {
      const count = await launchEndlessCount(service, host, host.sid);
      host.proxy.forget();
      const late = await launchAsync(service.client, host.sid, 'echo late');
      const sizeNow = async () => (await readOutput(service.client, count.id)).length;
      const before = await sizeNow();
      await Promise.all([
        waitFor(async () => (await sizeNow()) > before + IN_FLIGHT, {
          what: 'output to grow again',
          timeoutMs: WORKS_AGAIN_MS,
          intervalMs: 100,
        }),
        waitForEnd(service.client, late.id, WORKS_AGAIN_MS),
      ]);
      expect(String(await readOutput(service.client, late.id))).toBe('late\n');
      count.stop();
      await count.expectWhole(WORKS_AGAIN_MS);
    }),
  );

  test.concurrent(
    'a link that is silent for 30 s in one direction alone',
    { timeout: 180_000 },
    () =>
      withHost(service, async host => {
        const count = await launchEndlessCount(service, host, host.sid);
        host.proxy.blackhole('up');
        await delay(SILENT_MS);
        count.stop();
        host.proxy.heal();
        await Promise.all([count.expectWhole(WORKS_AGAIN_MS), expectUse(host)]);
      }),
  );

  test.concurrent('a host that is unreachable for more than a minute', { timeout: 240_000 }, () =>
    withHost(service, async host => {
      const count = await launchEndlessCount(service, host, host.sid);
      await host.sshd.down();
      // Every worker's link has ended before it is asked: over one that seems to live, the command may have been begun.
      host.proxy.cut();
      const since = performance.now();
      // It was never begun: it may fail, and that it does must be sure.
      const late = await launchAsync(service.client, host.sid, 'touch "$HOME/late"');
      expect(await waitForEnd(service.client, late.id, 90_000)).toMatchObject({
        state: 'failed',
        error: { code: 'remote_connection_failed' },
      });
      // However often it was tried: many jobs may wait for a host.
      const lines = service.stack.log().split('\n');
      const told = lines.filter(
        line => line.includes(late.id) && line.includes('connecting again'),
      );
      expect(told).toHaveLength(1);
      await delay(Math.max(0, UNREACHABLE_MS - (performance.now() - since)));
      expect((await service.client.get<Job>(`/api/jobs/${count.id}`)).state).toBe('running');
      count.stop();
      await host.sshd.up();
      await Promise.all([count.expectWhole(WORKS_AGAIN_MS), expectUse(host)]);
      expect(existsSync(join(host.sshd.home, 'late'))).toBe(false);
    }),
  );

  test.concurrent('a host that is unreachable while it encodes a video', { timeout: 240_000 }, () =>
    withHost(service, async host => {
      const images = await drawLongFilm(host);
      const id = await startVideo(service, host, { images, encode: 'host' });
      await waitFor(
        async () => {
          const { message } = await service.client.get<{ message: string }>(`/api/jobs/${id}`);
          return /^encoding: [1-9]/.test(message);
        },
        { what: 'the first pictures', timeoutMs: 60_000, intervalMs: 50 },
      );
      await host.sshd.down();
      host.proxy.cut();
      const sql = openStackDatabase(service.stack);
      await waitFor(
        async () => (await sql`select 1 from jobs where id = ${id} and epoch > 2`).length > 0,
        { what: 'two attempts to yield their slot', timeoutMs: 150_000 },
      ).finally(() => sql.end());
      await host.sshd.up();
      await expectWholeVideo(service, host, { id, frames: images.length });
    }),
  );

  // For the full form: a connection may be idle for five minutes.
  if (isFull) {
    test.concurrent(
      'a connection that nobody uses is closed, and made again',
      { timeout: 500_000 },
      () =>
        withHost(service, async host => {
          await expectUse(host);
          expect(host.proxy.connections.open).toBeGreaterThan(0);
          await waitFor(() => host.proxy.connections.open === 0, {
            what: 'its connections to be closed',
            timeoutMs: 400_000,
            intervalMs: 500,
          });
          await expectUse(host);
        }),
    );
  }

  test.concurrent('a link that is cut at random bytes, either way', { timeout: 240_000 }, () =>
    withHost(service, host =>
      withSeed(async random => {
        const { client } = service;
        const last = 400_000;
        const count = await launchEndlessCount(service, host, host.sid);
        const { id } = await launchSurely(service, host.sid, `seq 1 ${last}; sleep 2; seq 1 9`);
        for (let cuts = 0; cuts < 8; cuts++) {
          const { total } = host.proxy.connections;
          const anew = () => host.proxy.connections.total > total;
          const direction = random.pick(['up', 'down'] as const);
          // Now in the login, now in the hello, now in the output or in what is acknowledged of it.
          const most = random.pick(direction === 'up' ? [300, 5_000] : [300, 5_000, 200_000]);
          host.proxy.cutAfter(direction, Math.ceil(random.between(1, most)));
          await waitFor(anew, { what: 'a cut', timeoutMs: 5_000 }).catch(() => host.proxy.cut());
          await waitFor(anew, { what: `a connection after cut ${cuts}`, timeoutMs: 60_000 });
        }
        host.proxy.heal();
        count.stop();
        expect(await waitForEnd(client, id, 60_000)).toMatchObject({ state: 'succeeded' });
        const numbers = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}\n`).join('');
        expect(digest(await readOutput(client, id))).toBe(digest(numbers(last) + numbers(9)));
        await Promise.all([count.expectWhole(WORKS_AGAIN_MS), expectUse(host)]);
      }),
    ),
  );
});

/** A difference of megabytes is not worth printing. */
function digest(bytes: Buffer | string): string {
  return `${bytes.length} bytes, ${createHash('sha256').update(bytes).digest('hex')}`;
}
