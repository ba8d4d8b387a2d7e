import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '../../servers/api-client.ts';

interface OutputEvent {
  stream: 'stdout' | 'stderr';
  offset: number;
  text: string;
}

/** What a client has that follows a job's events and connects again with Last-Event-ID whenever the stream ends. */
export interface Followed {
  stdout: string;
  stderr: string;
  /** Gaps and repeats: an output event that did not begin where the last one of its stream ended. */
  jumps: string[];
  state: string;
  /** The last event came. */
  isEnded: boolean;
  connections: number;
}

/** Follows a job's events to their end. `seen` grows as they come. */
export async function followEvents(client: Client, job: string, seen: Followed): Promise<Followed> {
  let last = '';
  while (!seen.isEnded) {
    try {
      const headers: Record<string, string> = last ? { 'Last-Event-ID': last } : {};
      const response = await client.fetch(`/api/jobs/${job}/events`, { headers });
      if (!response.ok || !response.body) throw new Error(`${response.status}`);
      seen.connections++;
      for await (const frame of readFrames(response.body)) {
        take(seen, frame);
        last = frame.id || last;
      }
    } catch {
      // The service is unreachable, or became unreachable: an EventSource tries again after a while too.
    }
    await delay(50);
  }
  return seen;
}

export const nothingSeen = (): Followed => ({
  stdout: '',
  stderr: '',
  jumps: [],
  state: '',
  isEnded: false,
  connections: 0,
});

function take(seen: Followed, frame: Frame): void {
  const data: unknown = JSON.parse(frame.data);
  if (frame.event === 'end') seen.isEnded = true;
  if (frame.event === 'state') seen.state = (data as { state: string }).state;
  if (frame.event !== 'output') return;
  const { stream, offset, text } = data as OutputEvent;
  // What this test's commands print is ASCII: offsets count characters.
  if (offset !== seen[stream].length)
    seen.jumps.push(`${stream} at ${seen[stream].length}: event from ${offset}`);
  seen[stream] += text;
}

interface Frame {
  event: string;
  id: string;
  data: string;
}

async function* readFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) {
    text += decoder.decode(part, { stream: true });
    const frames = text.split('\n\n');
    // A frame that was cut off is no event (WHATWG HTML, 9.2.6).
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(frame)?.[1] ?? '';
      if (field('data')) yield { event: field('event'), id: field('id'), data: field('data') };
    }
  }
}
