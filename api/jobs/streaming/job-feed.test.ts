import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { EventStream } from './event-stream.ts';
import { JobFeed } from './job-feed.ts';
import { isNewer } from './job-watch.ts';
import type { OutputReader } from './output-reader.ts';

const ended: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

/** A stream, and the text that its client gets until the end. */
async function openStream(): Promise<{ stream: EventStream; text: Promise<string> }> {
  const server = createServer().listen(0, '127.0.0.1');
  ended.push(() => server.close().closeAllConnections());
  await once(server, 'listening');
  const answer = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const [, out] = (await once(server, 'request')) as [unknown, ServerResponse];
  const text = answer.then(response => response.text());
  return { stream: new EventStream(out, { stdout: 0, stderr: 0 }), text };
}

/** A job without output. */
const row = (version: number, finished: Date | null) =>
  ({
    version,
    finished,
    state: finished ? 'succeeded' : 'running',
    progress: null,
    stdoutBytes: 0,
    stderrBytes: 0,
  }) as JobSummary;
const openFeed = () =>
  new JobFeed(row(10, null), {} as OutputReader, error => {
    throw error;
  });
const END = /"state":"succeeded".*event: end\n/s;

test('an end that a failover gave a lower version ends the streams', async () => {
  const { stream, text } = await openStream();
  const feed = openFeed();
  feed.add(stream, row(10, null));
  feed.change(row(9, null));
  expect(stream.closed).toBe(false);
  feed.change(row(9, new Date()));
  expect(await text).toMatch(END);
});

test('a stream that begins with such an end gets it', async () => {
  const { stream, text } = await openStream();
  openFeed().add(stream, row(9, new Date()));
  expect(await text).toMatch(END);
});

test('what is read late from before a failover does not undo an end', () => {
  expect(isNewer(row(7, null), row(5, new Date()))).toBe(false);
  expect(isNewer(row(7, new Date()), row(5, new Date()))).toBe(true);
});
