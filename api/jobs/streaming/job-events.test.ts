import { expect, test } from 'vitest';
import { encodeEnd, encodeEvent, encodeOutput } from './event-frames.ts';
import { toUpdate } from './event-stream.ts';
import { jobEvent } from './job-events.ts';

/** What a client reads of an event: its fields, and its data as JSON. */
function read(frame: string): unknown {
  const lines = frame.trim().split('\n');
  const fields = new Map(lines.map(line => line.split(/: (.*)/s) as [string, string]));
  const data: unknown = JSON.parse(fields.get('data') ?? '');
  return { event: fields.get('event'), id: fields.get('id'), data };
}

const START = { stdout: 0, stderr: 0 };
const RUNNING = { state: 'running', progress: 0.5, message: 'Half of it.', error: null } as const;
const ERROR = {
  code: 'time_limit',
  detail: 'Time limit.',
  hint: 'Give more.',
  seconds: 1,
} as const;
type Row = Parameters<typeof toUpdate>[0];

async function* pieces() {
  yield { stream: 'stdout' as const, offset: 0, bytes: Buffer.from('text, ä\n') };
  yield { stream: 'stderr' as const, offset: 0, bytes: Buffer.from([0xff, 0x00]) };
}

test('what is sent is as described, and nothing besides', async () => {
  const running = toUpdate(RUNNING as unknown as Row);
  const unreachable = { ...RUNNING, progress: null, unreachableSince: new Date(), finished: null };
  const failed = toUpdate({ ...RUNNING, state: 'failed', error: ERROR } as unknown as Row);
  const frames = [
    encodeEvent('state', START, running.state),
    encodeEvent('state', START, toUpdate(unreachable as unknown as Row).state),
    encodeEvent('progress', START, running.progress ?? ''),
    encodeEvent('state', START, failed.state),
    encodeEnd(START),
  ];
  for await (const { bytes } of encodeOutput(pieces(), START, true)) frames.push(bytes.toString());
  const events = frames.map(read);
  expect(events.map(event => jobEvent.parse(event))).toEqual(events);
  expect(JSON.stringify(events)).toContain('"base64"');
  expect(JSON.stringify(events)).toContain('"message":"waiting: ');
  expect(JSON.stringify(events)).toContain('"seconds":1');
});
