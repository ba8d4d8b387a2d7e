import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listProcesses, signalProcess } from '../../servers/processes.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { createLog } from '../../shared/process/log.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import type { StoredObject } from '../../shared/storage/object-store.ts';
import { OrphanCollector } from '../../workers/upkeep/orphaned-objects.ts';
import { DeletionSweep } from '../../workers/upkeep/pending-deletions.ts';
import { openStackDatabase, stackDatabaseUrl } from '../harness/databases/database.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { type Job, waitForEnd } from '../harness/hosts/remote.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { watchMemory } from '../harness/stacks/memory.ts';
import { waitFor } from '../harness/wait-for.ts';
import {
  type FaultHost,
  killSomeWorker,
  type RunningStack,
  startFaultStack,
  withHost,
} from './fault-host.ts';
import { expectCleanHost, listHostProcesses } from './host-state.ts';
import { drawLongFilm, expectWholeVideo, startVideo } from './long-videos.ts';
import { isFull, withSeed } from './settings.ts';

const DAY_MS = 86_400_000;

/** Whatever dies or breaks while a video is made: it is whole or says why not, and nothing of it is left. */
describeUnless(missingPrograms('sshd', 'ffmpeg'), 'videos and faults', () => {
  let service: RunningStack;
  beforeAll(async () => {
    service = await startFaultStack('postgres');
  });
  afterAll(() => service?.stack.stop());

  const jobOf = (id: string) =>
    service.client.get<Job & { message: string | null }>(`/api/jobs/${id}`);
  const waitForPictures = (id: string) =>
    waitFor(async () => /^encoding: [1-9]/.test((await jobOf(id)).message ?? ''), {
      what: 'the first pictures',
      timeoutMs: 60_000,
      intervalMs: 50,
    });

  test(
    'a pattern is expanded once, though files come and the worker dies',
    { timeout: 180_000 },
    () =>
      withHost(service, async host => {
        const folder = join(host.sshd.home, 'growing');
        const drawn = await drawFrames({ folder, count: 10, width: 640, height: 360 });
        const grow = (from: number, to: number) => {
          for (let n = from; n < to; n++)
            copyFileSync(drawn[n % 10] ?? '', join(folder, `more ${n}.png`));
        };
        grow(0, 300);
        const id = await startVideo(service, host, {
          pattern: join(folder, 'more *'),
          encode: 'host',
        });
        await waitForPictures(id);
        grow(300, 310);
        signalProcess(pidOfWorker((await jobOf(id)).worker ?? ''), 'SIGKILL');
        await expectWholeVideo(service, host, { id, frames: 300 });
        expect((await jobOf(id)).result).toMatchObject({ frames: 300, encoded: 'host' });
      }),
  );

  test('workers, the ffmpeg of the host and links die at any moment', { timeout: 600_000 }, () =>
    withHost(service, host =>
      withSeed(async random => {
        const images = await drawLongFilm(host);
        const ids: string[] = [];
        for (let round = 0; round < (isFull ? 12 : 2); round++) {
          const asked = [
            { images, encode: 'host' },
            { images, encode: 'worker', label: 'frame' },
            { images, label: 'name' },
          ];
          const started = await Promise.all(asked.map(each => startVideo(service, host, each)));
          ids.push(...started);
          let killed = 0;
          for (const fault of ['link', 'ffmpeg', 'worker']) {
            await delay(random.between(100, 2_500));
            if (fault === 'link') host.proxy.cut();
            else if (fault === 'worker') await killSomeWorker(service, random);
            else killed += killFfmpeg(host);
          }
          for (const [i, id] of started.entries()) {
            const job = await waitForEnd(service.client, id, 180_000);
            // Where the host must encode it, an ffmpeg that is killed there is the end of it.
            if (job.state === 'failed' && i === 0 && killed > 0)
              expect(job.error).toMatchObject({ code: 'video_failed', returncode: 137 });
            else await expectWholeVideo(service, host, { id, frames: images.length });
          }
        }
        await expectCleanHost(service, host);
        expect(runningThere(host)).toEqual([]);
        await expectCleanStore(service, await Promise.all(ids.map(jobOf)));
      }),
    ),
  );

  test(
    'what a host kills with all of the account is made by a worker where that may',
    { timeout: 300_000 },
    () =>
      withHost(service, async host => {
        const images = await drawLongFilm(host);
        for (const encode of [undefined, 'host']) {
          const id = await startVideo(service, host, { images, encode });
          await waitForPictures(id);
          for (const { pid } of listHostProcesses(host)) signalProcess(pid, 'SIGKILL');
          const job = await waitForEnd(service.client, id, 180_000);
          if (encode === undefined) {
            expect(job.result).toMatchObject({ encoded: 'worker' });
            await expectWholeVideo(service, host, { id, frames: images.length });
          } else {
            expect(job.error).toMatchObject({
              code: 'video_failed',
              detail: expect.stringContaining('the host lost ffmpeg'),
              hint: expect.stringContaining('Leave "encode" out'),
            });
          }
        }
      }),
  );

  test('an ffmpeg that is killed on its host is not taken for a broken frame', () =>
    withHost(service, async host => {
      const images = await drawLongFilm(host);
      const id = await startVideo(service, host, { images, encode: 'host' });
      await waitForPictures(id);
      await waitFor(() => killFfmpeg(host) > 0, { what: 'ffmpeg', intervalMs: 20 });
      expect((await waitForEnd(service.client, id, 60_000)).error).toMatchObject({
        code: 'video_failed',
        detail: expect.stringContaining('ffmpeg was killed'),
        hint: expect.not.stringContaining('frame is broken'),
        returncode: 137,
      });
    }));

  if (isFull) {
    test.each([
      { frames: 3_000, width: 1_280, height: 720 },
      { frames: 100_000, width: 64, height: 48 },
    ])('$frames frames of $width×$height', { timeout: 3_600_000 }, ({ frames, ...size }) =>
      withHost(service, async host => {
        const drawn = await drawFrames({
          folder: join(host.sshd.home, 'many'),
          count: 10,
          ...size,
        });
        const folder = dirname(drawn[0] ?? '');
        for (let n = 0; n < frames; n++)
          copyFileSync(drawn[n % 10] ?? '', join(folder, `n${n}.png`));
        for (const encode of ['host', 'worker']) {
          const began = performance.now();
          const id = await startVideo(service, host, { pattern: join(folder, 'n%d.png'), encode });
          const memory = watchMemory(service.stack);
          expect(await waitForEnd(service.client, id, 3_000_000)).toMatchObject({
            state: 'succeeded',
          });
          const seconds = Math.round((performance.now() - began) / 1_000);
          console.info(
            `${frames} frames of ${size.width}×${size.height}, ${encode}: ${seconds} s, more memory ${JSON.stringify(memory.growth())}`,
          );
          await expectWholeVideo(service, host, { id, frames });
        }
      }),
    );
  }
});

/** The videos that this host makes. */
const runningThere = ({ sshd }: FaultHost) =>
  listProcesses().filter(
    ({ command }) => command.includes('ffmpeg') && command.includes(`${sshd.home}/.windlass/`),
  );

function killFfmpeg(host: FaultHost): number {
  const found = runningThere(host);
  for (const { pid } of found) signalProcess(pid, 'SIGKILL');
  return found.length;
}

/** Its objects are a day older. */
class AgedStore extends FileStore {
  override async *list(prefix: string): AsyncGenerator<StoredObject> {
    for await (const found of super.list(prefix))
      yield { ...found, modified: new Date(found.modified.getTime() - DAY_MS) };
  }
}

/** Once upkeep has looked for what no row refers to, the store has the bytes of these videos and no other. */
async function expectCleanStore({ stack }: RunningStack, jobs: Job[]): Promise<void> {
  const folder = join(stack.dataDir, 'objects');
  const store = new FileStore(folder, { keepFree: 0 });
  const list = async () => {
    const found: StoredObject[] = [];
    for await (const object of store.list('videos/')) found.push(object);
    return found.map(({ key }) => key).filter(key => jobs.some(({ id }) => key.includes(id)));
  };
  const sql = openStackDatabase(stack);
  const database = openDatabase(stackDatabaseUrl(stack));
  try {
    const rows = await sql`select result from jobs where id = any(${jobs.map(({ id }) => id)})`;
    const kept = rows.flatMap(({ result }) =>
      [result?.object, result?.poster, result?.sprite].filter(Boolean),
    );
    const log = createLog({ level: 'silent', name: 'test' });
    const context = {
      database,
      objects: new AgedStore(folder, { keepFree: 0 }),
      log,
      stopping: new AbortController().signal,
    };
    await new OrphanCollector(context).markSome();
    await sql`update pending_deletions set due = now() - interval '1 minute'`;
    await new DeletionSweep({ ...context, objects: store }).run();
    expect((await list()).sort()).toEqual(kept.sort());
  } finally {
    await sql.end();
    await database.close();
  }
}
