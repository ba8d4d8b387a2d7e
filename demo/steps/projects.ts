import { dim, expect } from '../console.ts';
import type { DemoContext } from '../context.ts';
import type { Video } from './videos.ts';

export interface ProjectWithModel {
  /** The project. */
  pid: string;
  /** The model in it. */
  mid: string;
}

/** Creates a project and a model in it. */
export async function makeProject({ client, out }: DemoContext): Promise<ProjectWithModel> {
  const { id: pid } = await client.post<{ id: string }>('/api/projects', {
    name: 'Weather stations',
    description: 'What the demonstration makes.',
  });
  const { id: mid } = await client.post<{ id: string }>(`/api/projects/${pid}/models`, {
    'model-type': 'measurements',
    name: 'A summer',
  });
  out.note(`project ${pid}, model ${mid}`);
  return { pid, mid };
}

const KEY = 'runs/1/turning.mp4';

/** Stores the video in the project's cache, where it remains after its session, and fetches it from there. */
export async function cacheVideo(
  { client, out }: DemoContext,
  video: Video,
  pid: string,
): Promise<void> {
  const query = `cache=project&project=${pid}&key=${encodeURIComponent(KEY)}`;
  const first = await client.getBytes(`${video.path}?${query}`);
  expect(first.bytes.equals(video.bytes), 'the video that was cached is not the same');
  const path = `/api/projects/${pid}/cache/${KEY}`;
  const { bytes } = await client.getBytes(path);
  expect(bytes.equals(video.bytes), 'the cache holds other bytes');
  out.note(dim(`GET ${video.path}?${query}`));
  out.note(dim(`GET ${path}`));
  out.note(`${bytes.length} bytes from the cache, the same ones`);
}
