import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect } from 'vitest';
import { countFrames } from '../../../demo/probe-video.ts';
import type { Client } from '../../../servers/api-client.ts';
import { findDescendants, type ProcessEntry } from '../../../servers/processes.ts';
import { readConfig } from '../../../shared/settings/config.ts';
import { openObjectStore } from '../../../shared/storage/open.ts';
import { type Job, openSession, waitForEnd } from '../hosts/remote.ts';
import type { TestSshd } from '../hosts/sshd.ts';
import type { Form } from '../stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../stacks/use-stack.ts';
import { waitFor } from '../wait-for.ts';
import { makeTempDir } from './temp-dir.ts';

/** No multiple of a second's frames, so that a segment in a wrong place shows. */
const DRAWN = 97;
const FRAMES = 1_500;
/** The video, its poster and its sprite. */
const OBJECTS = 3;

export interface SegmentSeen {
  start: number;
  until: number;
  done: number;
  worker: string | null;
}

export interface SegmentedVideos {
  client: Client;
  sshd: TestSshd;
  sid: string;
  /** A film of 640×360 that takes x264 some seconds. */
  frames: string[];
  /** Starts a video that a worker is to encode; its id. */
  start(options: object): Promise<string>;
  jobOf(id: string): Promise<Job & { message: string }>;
  segmentsOf(id: string): Promise<SegmentSeen[]>;
  /** What encodes below this process; default: all. */
  encoders(pid?: number): ProcessEntry[];
  /** The worker that helps, once it has encoded frames. */
  helperOf(id: string): Promise<string>;
  /** Expects that it is made of `frames` frames, and that nothing else is left. */
  expectWhole(id: string, frames: number): Promise<void>;
  /** Expects that `kept` objects are left of what was made for it, and that nobody works at it. */
  expectNothingLeft(id: string, kept: number): Promise<void>;
}

/** Two workers with one slot for videos each, so that the other one helps, and soon. */
export function useSegmentedVideos(form: Form, env: Record<string, string> = {}): SegmentedVideos {
  const { client, sshd, stack } = useRemoteStack(form, {
    workers: 2,
    env: { VIDEO_SLOTS: '1', VIDEO_SHARE_SECONDS: '1', LIMIT_REQUESTS: '0', ...env },
  });
  const sql = useStackDatabase(stack);
  const jobOf: SegmentedVideos['jobOf'] = id => client.get(`/api/jobs/${id}`);
  const segmentsOf = (id: string) =>
    sql<
      SegmentSeen[]
    >`select start, until, done, worker from video_segments where job = ${id} order by start`;
  const listObjects = async (id: string) => {
    const store = await openObjectStore(readConfig(stack.environment));
    const found: string[] = [];
    for await (const { key } of store.list('videos/')) if (key.includes(id)) found.push(key);
    return found;
  };
  const encoders = (pid = stack.pid) =>
    findDescendants([pid]).filter(({ command }) => /ffmpeg.*pipe:0/.test(command));
  const stage: SegmentedVideos = {
    client,
    sshd,
    sid: '',
    frames: [],
    jobOf,
    segmentsOf,
    encoders,
    async start(options) {
      const body = { 'content-type': 'video/mp4', encode: 'worker', ...options };
      return (await client.post<{ vsid: string }>(`/api/remotes/${stage.sid}/videos`, body)).vsid;
    },
    helperOf: id =>
      waitFor(
        async () => {
          const { worker, error } = await jobOf(id);
          expect(error).toBeNull();
          const others = (await segmentsOf(id)).filter(each => each.worker !== worker);
          return others.find(({ done }) => done > 0)?.worker;
        },
        { what: 'the help of another worker', timeoutMs: 60_000, intervalMs: 50 },
      ),
    async expectWhole(id, frames) {
      const job = await waitForEnd(client, id, 120_000);
      expect(job).toMatchObject({ state: 'succeeded', result: { frames } });
      const answer = await client.fetch(`/api/jobs/${id}/result`);
      const directory = makeTempDir('segmented');
      try {
        const file = join(directory.path, 'video');
        writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
        expect(await countFrames(file)).toBe(frames);
      } finally {
        directory.remove();
      }
      await stage.expectNothingLeft(id, OBJECTS);
    },
    async expectNothingLeft(id, kept) {
      await waitFor(async () => (await segmentsOf(id)).length === 0, { what: 'no segments' });
      await waitFor(async () => (await listObjects(id)).length === kept, {
        what: 'the objects of segments to be removed',
        timeoutMs: 30_000,
      });
      await waitFor(() => encoders().length === 0, { what: 'every ffmpeg to end' });
    },
  };
  beforeAll(async () => {
    stage.sid = await openSession(client, sshd);
    stage.frames = drawFilm(join(sshd.home, 'film'));
  });
  return stage;
}

/** Writes pictures that move, few of which are drawn; all their paths. */
export function drawFilm(folder: string, frames = FRAMES): string[] {
  mkdirSync(folder, { recursive: true });
  const source = ['-f', 'lavfi', '-i', 'testsrc2=s=640x360:r=25', '-frames:v', String(DRAWN)];
  const output = ['-q:v', '2', '-start_number', '0', join(folder, 'd%d.jpg')];
  execFileSync('ffmpeg', ['-v', 'error', ...source, ...output]);
  return Array.from({ length: frames }, (_, n) => join(folder, `d${n % DRAWN}.jpg`));
}

/** Gives these files names with their numbers, from 0. */
export function linkFrames(paths: string[], pattern: string): void {
  mkdirSync(dirname(pattern), { recursive: true });
  for (const [n, path] of paths.entries()) linkSync(path, pattern.replace('%d', String(n)));
}
