/**
 * `npm run bench:video`: compares making a video, from the POST to `ready`, with this machine's ffmpeg on the same files.
 * Needs sshd, ffmpeg and nginx. Fails if a ratio misses its target in docs/performance.md. Arguments select parts: many,
 * few, ranges.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startSshHost } from '../servers/ssh-host.ts';
import { startStack } from '../servers/stack.ts';
import { compare, type Side } from './compare.ts';
import { makeDirectories, readParts } from './prepare.ts';
import { compareRanges } from './serve-ranges.ts';
import { addHost, openSession } from './session.ts';

const isWanted = readParts(['many', 'few', 'ranges']);
/** What our own command gives x264, see workers/video/ffmpeg-arguments.ts. */
const ENCODER =
  '-c:v libx264 -preset veryfast -crf 23 -pix_fmt yuv420p -g 25 -movflags +faststart'.split(' ');
/** Ten small frames may take so much longer than ffmpeg alone. */
const MOST_OVER_MS = 300;
const FEW_RUNS = 10;

const { directory } = makeDirectories();
const host = await startSshHost({ directory: join(directory, 'host'), log: () => {} });
if (host.kind !== 'sshd') throw new Error('There is no sshd on this machine.');
const stack = await startStack({
  directory,
  environment: { PATH: process.env.PATH },
  settings: { LIMIT_REQUESTS: '0' },
});
const { client } = stack;

try {
  await addHost(client, 'host', host);
  const sid = await openSession(client, 'host', host);
  const passed = [
    ...(isWanted('many') ? [await compareMany(sid)] : []),
    ...(isWanted('few') ? [await measureFew(sid)] : []),
    ...(isWanted('ranges') ? [await measureRanges(sid)] : []),
  ];
  process.exitCode = passed.every(Boolean) ? 0 : 1;
} finally {
  await stack.stop();
  await host.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

async function compareMany(sid: string): Promise<boolean> {
  const pattern = drawFrames('many', { count: 300, size: '1280x720' });
  const { passed } = await compare({
    name: '300 frames of 1280×720',
    ours: timed(() => makeVideo(sid, pattern)),
    baseline: timed(async () => runFfmpeg(pattern)),
    unit: 'ms',
    better: 'less',
    target: 1.05,
  });
  return passed;
}

async function measureFew(sid: string): Promise<boolean> {
  const pattern = drawFrames('few', { count: 10, size: '64x48' });
  const over: number[] = [];
  for (let run = 0; run < FEW_RUNS; run++) {
    const ours = await timed(() => makeVideo(sid, pattern))();
    over.push(ours - (await timed(async () => runFfmpeg(pattern))()));
  }
  const median = over.sort((a, b) => a - b)[FEW_RUNS / 2] ?? Number.NaN;
  const passed = median <= MOST_OVER_MS;
  console.log(
    `10 frames of 64×48: ${median.toFixed(0)} ms over ffmpeg, at most ${MOST_OVER_MS}${passed ? '' : ', MISSED'}`,
  );
  return passed;
}

async function measureRanges(sid: string): Promise<boolean> {
  const path = await makeVideo(sid, drawFrames('ranges', { count: 100, size: '1920x1080' }));
  const file = join(directory, 'ranges.mp4');
  writeFileSync(file, (await client.getBytes(path)).bytes);
  return (await compareRanges({ client, directory, path, file })).passed;
}

/** Moving pictures, as PNG; the pattern of their names. */
function drawFrames(name: string, { count, size }: { count: number; size: string }): string {
  const folder = join(directory, name);
  mkdirSync(folder, { mode: 0o755 });
  const pattern = join(folder, '%05d.png');
  const source = ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=25`, '-frames:v', String(count)];
  execFileSync('ffmpeg', ['-v', 'error', ...source, pattern]);
  return pattern;
}

function runFfmpeg(pattern: string): void {
  const output = join(directory, 'peer.mp4');
  const input = ['-v', 'error', '-y', '-framerate', '25', '-i', pattern];
  execFileSync('ffmpeg', [...input, ...ENCODER, output]);
}

/** Returns the path of the video. It waits as a client does: polls would take the processor from what is measured. */
async function makeVideo(sid: string, pattern: string): Promise<string> {
  const body = { 'content-type': 'video/mp4', pattern, fps: 25 };
  const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
  const path = `/api/remotes/${sid}/videos/${vsid}`;
  for (;;) {
    const answer = await client.fetch(`${path}/status`, { headers: { Prefer: 'wait=30' } });
    const status = (await answer.json()) as { ok: boolean; ready: boolean; message: string };
    if (status.ready) return path;
    if (!status.ok) throw new Error(status.message);
  }
}

function timed(work: () => Promise<unknown>): Side {
  return async () => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
}
