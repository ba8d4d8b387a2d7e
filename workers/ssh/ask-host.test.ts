import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { askHost } from './ask-host.ts';

const patient = new AbortController().signal;

/** A host that answers in these pieces. */
const answering = (pieces: Iterable<Buffer>): RemoteExec => ({
  exec: async () => {
    const stdout = Readable.from(pieces, { objectMode: false, highWaterMark: 1 });
    const closed = Promise.resolve({ code: 0, signal: null });
    const [stdin, stderr] = [new PassThrough().resume(), new PassThrough()];
    return { stdin, stdout, stderr, closed, destroy: () => stdout.destroy() };
  },
});

function* bytesOf(text: string, times = 1): Generator<Buffer> {
  for (let i = 0; i < times; i++) for (const byte of Buffer.from(text)) yield Buffer.from([byte]);
}

test('an answer may come in pieces, but not in more than memory should hold', async () => {
  const whole = Buffer.from('\nwhole\n');
  const few = askHost(answering([...bytesOf('answer', 1_000), whole]), 'true', patient);
  expect((await few).toString()).toBe('answer'.repeat(1_000));
  let sent = 0;
  const many = function* () {
    for (const piece of bytesOf('x', 1_000_000)) {
      sent++;
      yield piece;
    }
    yield whole;
  };
  await expect(askHost(answering(many()), 'true', patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    cause: { message: expect.stringContaining('takes more than') },
  });
  expect(sent).toBeLessThan(200_000);
});
