import { once } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import { makeJobContext } from '../../test/harness/job-context.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import { watchLimits } from './command-limits.ts';

let limits: ReturnType<typeof watchLimits>;
afterEach(() => limits.close());

function watch(timeout: number, outputBytes: number) {
  const context = makeJobContext<'command'>({
    payload: { command: 'true', timeout },
    worker: { config: { LIMIT_COMMAND_SECONDS: 0, LIMIT_OUTPUT_BYTES: outputBytes } },
  });
  const output = { stored: { stdout: 0, stderr: 0 } };
  limits = watchLimits(context, output as unknown as OutputWriter);
  return limits;
}

function watchBegun(timeout: number, outputBytes: number) {
  watch(timeout, outputBytes).begun(new Date());
  return limits;
}

test('output that comes after the time limit is kept: the command may have ended by itself', async () => {
  const { signal, take, assertKept } = watchBegun(0.001, 10);
  await once(signal, 'abort');
  expect(signal.reason).toMatchObject({ code: 'time_limit' });
  expect(take(Buffer.from('kept')).toString()).toBe('kept');
  assertKept();
});

test('output beyond its limit is left out, which is told, also after the time limit', async () => {
  const { signal, take, assertKept } = watchBegun(0.001, 10);
  await once(signal, 'abort');
  expect(take(Buffer.from('0123456789abc')).toString()).toBe('0123456789');
  expect(take(Buffer.from('more')).length).toBe(0);
  expect(assertKept).toThrow(expect.objectContaining({ code: 'output_limit' }));
});

test('before the time limit, output beyond its limit ends the command', () => {
  const { signal, take, assertKept } = watchBegun(3_600, 3);
  expect(take(Buffer.from('abc')).toString()).toBe('abc');
  assertKept();
  expect(signal.aborted).toBe(false);
  expect(take(Buffer.from('d')).length).toBe(0);
  expect(signal.reason).toMatchObject({ code: 'output_limit' });
  expect(assertKept).toThrow(expect.objectContaining({ code: 'output_limit' }));
});

test('a command that has not started yet has used none of its time', async () => {
  const { signal, begun } = watch(0.05, 10);
  const until = performance.now() + 200;
  await vi.waitUntil(() => performance.now() > until, { timeout: 1_000 });
  expect(signal.aborted).toBe(false);
  begun(new Date());
  await once(signal, 'abort');
  expect(signal.reason).toMatchObject({ code: 'time_limit' });
});

test('a time limit of a month is one of a month', () => {
  vi.useFakeTimers();
  try {
    const day = 86_400;
    const { signal } = watchBegun(30 * day, 0);
    vi.advanceTimersByTime(29.9 * day * 1_000);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(0.2 * day * 1_000);
    expect(signal.reason).toMatchObject({ code: 'time_limit' });
  } finally {
    vi.useRealTimers();
  }
});
