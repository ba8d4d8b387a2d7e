import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { askHost } from './ask-host.ts';

const patient = new AbortController().signal;

/** A host whose shell prints `before`, and that answers in these pieces. */
const answering = (pieces: Iterable<Buffer>, { before = '', mark = true } = {}): RemoteExec => ({
  exec: async () => {
    const stdin = new PassThrough();
    const answer = async function* () {
      const [first] = /\\nwindlass-\w+\\n/.exec(await text(stdin)) ?? [];
      yield Buffer.from(before + (mark ? first?.replaceAll('\\n', '\n') : ''));
      yield* pieces;
    };
    const stdout = Readable.from(answer(), { objectMode: false, highWaterMark: 1 });
    const closed = Promise.resolve({ code: 0, signal: null });
    return { stdin, stdout, stderr: new PassThrough(), closed, destroy: () => stdout.destroy() };
  },
});

function* bytesOf(word: string, times = 1): Generator<Buffer> {
  for (let i = 0; i < times; i++) for (const byte of Buffer.from(word)) yield Buffer.from([byte]);
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

test('what start-up files begin to print before it is no part of an answer', async () => {
  const pieces = [Buffer.from('answer\nwhole\n')];
  const asked = askHost(answering(pieces, { before: 'motd\nmore' }), 'true', patient);
  expect((await asked).toString()).toBe('answer');
  const unmarked = askHost(answering(pieces, { before: 'motd', mark: false }), 'true', patient);
  await expect(unmarked).rejects.toMatchObject({ code: 'startup_files_print' });
});
