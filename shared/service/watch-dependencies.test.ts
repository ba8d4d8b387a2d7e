import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createLog } from '../process/log.ts';
import { watchDependencies } from './watch-dependencies.ts';

let stopping = new AbortController();
afterEach(() => stopping.abort());

/** Watches every 5 ms; the lines from info up, or of another level. */
function watch(check: () => Promise<unknown>, level = 'info'): string[] {
  stopping = new AbortController();
  const lines: string[] = [];
  const write = (line: string) => {
    const { level, dependency, msg } = JSON.parse(line);
    lines.push(`${level} ${dependency}: ${msg}`);
  };
  const log = createLog({ level, name: 'test', write });
  watchDependencies([{ name: 'the queue', check }], {
    log,
    stopping: stopping.signal,
    everyMs: 5,
  });
  return lines;
}

test('what becomes unreachable is a warning once, and what is back is told once', async () => {
  let isUnreachable = false;
  let checks = 0;
  const lines = watch(async () => {
    checks++;
    if (isUnreachable) throw new Error('no answer');
  });
  const checked = async () => {
    const until = checks + 3;
    while (checks < until) await delay(1);
  };
  await checked();
  expect(lines).toEqual([]);
  isUnreachable = true;
  await checked();
  expect(lines).toEqual(['40 the queue: the queue is unreachable']);
  isUnreachable = false;
  await checked();
  isUnreachable = true;
  await checked();
  expect(lines.slice(1)).toEqual([
    '30 the queue: the queue is back',
    '40 the queue: the queue is unreachable',
  ]);
});

test('what fails meanwhile is told at debug', async () => {
  const lines = watch(() => Promise.reject(new Error('no answer')), 'debug');
  while (lines.length < 3) await delay(1);
  expect(lines.slice(0, 3)).toEqual([
    '40 the queue: the queue is unreachable',
    '20 the queue: the queue is unreachable',
    '20 the queue: the queue is unreachable',
  ]);
});

test('a check that fails because the process stops is no outage', async () => {
  let fail = (_: Error) => {};
  const lines = watch(
    () =>
      new Promise((_, reject) => {
        fail = reject;
      }),
  );
  await delay(10);
  stopping.abort();
  fail(new Error('closed'));
  await delay(10);
  expect(lines).toEqual([]);
});
