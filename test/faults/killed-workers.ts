import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { signalProcess } from '../../servers/processes.ts';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import type { Job } from '../harness/hosts/remote.ts';
import type { Random } from '../harness/random.ts';
import { waitFor } from '../harness/wait-for.ts';
import { type Count, expectWhole, launchCounts, waitForOutput } from './counting-commands.ts';
import { findWorkers, killSomeWorker, type RunningStack, withHost } from './fault-host.ts';
import { expectCleanHost, expectForgotten } from './host-state.ts';
import { drawLongFilm, expectWholeVideo, startVideo } from './long-videos.ts';
import { isFull, withSeed } from './settings.ts';

/** Of workers, while commands run. */
const KILLS = isFull ? 20 : 3;

/** Workers that die, or stand still, at any moment: a job goes on in another one, and nothing is done twice. */
export function testKilledWorkers(service: () => RunningStack): void {
  test(
    'commands lose and repeat nothing while workers are killed at random',
    {
      timeout: 60_000 + KILLS * 60_000,
    },
    () =>
      withHost(service(), host =>
        withSeed(async random => {
          for (let left = KILLS; left > 0; left -= 4) {
            const counts = await launchCounts(service(), host.sid, { commands: 20, seconds: 6 });
            await killAtRandom(service(), {
              kills: Math.min(4, left),
              random,
              longestPauseMs: 2_500,
            });
            await expectWhole(service(), host, counts);
          }
          await expectCleanHost(service(), host);
        }),
      ),
  );

  const videos = isFull ? { each: 6, kills: 10 } : { each: 3, kills: 2 };
  test(
    'videos are whole although workers are killed while they are made',
    {
      timeout: 300_000,
    },
    () =>
      withHost(service(), host =>
        withSeed(async random => {
          const images = await drawLongFilm(host);
          const started = await Promise.all(
            Array.from({ length: videos.each }, (_, i) =>
              startVideo(service(), host, { images, ...(i % 2 === 1 ? { encode: 'worker' } : {}) }),
            ),
          );
          await killAtRandom(service(), { kills: videos.kills, random, longestPauseMs: 3_000 });
          for (const id of started)
            await expectWholeVideo(service(), host, { id, frames: images.length });
          await expectForgotten(host);
        }),
      ),
  );

  test(
    'a worker that stood still for longer than its lease does no harm',
    {
      timeout: 180_000,
    },
    () =>
      withHost(service(), async host => {
        // One of the workers is also the dispatcher: each of them in turn.
        for (const paused of findWorkers(service())) {
          const counts = await launchCounts(service(), host.sid, { commands: 12, seconds: 8 });
          await waitForOutput(service(), counts);
          const held = await leasedBy(service(), counts, paused);
          expect(held.length).toBeGreaterThan(0);
          signalProcess(paused, 'SIGSTOP');
          try {
            await waitFor(async () => (await leasedBy(service(), held, paused)).length === 0, {
              what: 'the other worker to take over what the paused one held',
              timeoutMs: 45_000,
              intervalMs: 200,
            });
          } finally {
            signalProcess(paused, 'SIGCONT');
          }
          await expectWhole(service(), host, counts);
        }
      }),
  );
}

/** At moments that the seed draws; what state the work is in then is the point of the test. */
async function killAtRandom(
  service: RunningStack,
  options: { kills: number; random: Random; longestPauseMs: number },
): Promise<void> {
  for (let n = 0; n < options.kills; n++) {
    await delay(options.random.between(200, options.longestPauseMs));
    await killSomeWorker(service, options.random);
  }
}

async function leasedBy(
  { client }: RunningStack,
  counts: Count[],
  worker: number,
): Promise<Count[]> {
  const rows = await Promise.all(counts.map(({ id }) => client.get<Job>(`/api/jobs/${id}`)));
  return counts.filter(
    (_, i) => rows[i]?.state === 'running' && pidOfWorker(rows[i]?.worker ?? '') === worker,
  );
}
