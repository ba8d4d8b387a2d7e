import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { countFrames } from '../../demo/probe-video.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { waitFor } from '../harness/wait-for.ts';
import type { FaultHost, RunningStack } from './fault-host.ts';

/** The paths of few frames, shown again and again: long to encode and quick to draw. */
export async function drawLongFilm({ sshd }: FaultHost): Promise<string[]> {
  const folder = join(sshd.home, 'frames');
  const drawn = await drawFrames({ folder, count: 10, width: 640, height: 360 });
  return Array.from({ length: 40 }, () => drawn).flat();
}

export async function startVideo(
  { client }: RunningStack,
  { sid }: FaultHost,
  options: { images?: string[]; pattern?: string; encode?: string; label?: string },
): Promise<string> {
  const body = { 'content-type': 'video/mp4', ...options };
  return (await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body)).vsid;
}

/** Expects that the video is ready and has all its frames. */
export async function expectWholeVideo(
  { client }: RunningStack,
  { sid }: FaultHost,
  { id, frames }: { id: string; frames: number },
): Promise<void> {
  const at = `/api/remotes/${sid}/videos/${id}`;
  const status = await waitFor(
    async () => {
      const now = await client.get<{ ok: boolean; ready: boolean; message: string }>(
        `${at}/status`,
      );
      return (now.ready || !now.ok) && now;
    },
    { what: `video ${id}`, timeoutMs: 120_000, intervalMs: 200 },
  );
  expect(status).toMatchObject({ ok: true, ready: true });
  const response = await client.fetch(at);
  const directory = makeTempDir('video');
  try {
    const file = join(directory.path, 'video.mp4');
    await writeFile(file, Buffer.from(await response.arrayBuffer()));
    expect(await countFrames(file)).toBe(frames);
  } finally {
    directory.remove();
  }
}
